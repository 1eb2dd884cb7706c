"""Leaves out each barrier of kernels/cuda in turn, and tells those whose absence nothing notices.

    python3 tests/emulated_cuda/barriers.py [build/dev] [build/tsan]

Runs the tests of operators tagged [concurrent] on the emulated device of the first build, which sees numbers, and if
they pass on that of the second, which sees races. A barrier that neither misses says why it is there, or goes.
"""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def barriers():
    """Every place of a barrier, as "file:line", and the comment behind it."""
    for path in sorted((SOURCE / "kernels/cuda").rglob("*")):
        if path.suffix not in (".cu", ".h"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code, _, comment = line.partition("//")
            if "__syncthreads" in code:
                yield f"{path.name}:{number}", comment.strip()


def misses(build, place):
    """How a build's tests fail without the barrier: "race", "numbers", or None where they pass."""
    build = pathlib.Path(build).resolve()
    environment = dict(
        os.environ,
        EBB_TEST_DEVICE="cuda",
        EBB_CUDA_PART=str(build / "libebb_emulated_cuda.so"),
        EBB_EMULATED_WITHOUT=place,
    )
    run = subprocess.Popen(
        ["./tests_ops", "[concurrent]~[host]", "--abort"],
        cwd=build / "tests", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in run.stdout:
        if "ThreadSanitizer" in line:
            run.kill()
            return "race"
    return "numbers" if run.wait() else None


def main(builds):
    for build in builds:
        if failed := misses(build, "none"):
            sys.exit(f"{build}: the tests fail with all barriers ({failed})")
    unseen = []
    for place, reason in barriers():
        found = next((failed for build in builds if (failed := misses(build, place))), None)
        print(f"{place:24} {found or 'not missed'}  {reason}", flush=True)
        if not found and not reason:
            unseen.append(place)
    sys.exit(f"not missed, and not explained: {', '.join(unseen)}" if unseen else 0)


if __name__ == "__main__":
    main(sys.argv[1:] or ["build/dev", "build/tsan"])
