"""Leaves out each barrier of kernels/cuda in turn, and tells those whose absence nothing notices.

    python3 tests/emulated_cuda/barriers.py [build/dev] [build/tsan]

Runs the tests of operators tagged [concurrent] on the emulated device of the first build, which sees numbers, and if
they pass on that of the second, which sees races. A barrier that neither misses has its reason in EXPLAINED, or goes.
"""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXPLAINED = {}


def barriers():
    """Every place of a barrier, as "file:line"."""
    for path in sorted((SOURCE / "kernels/cuda").rglob("*")):
        if path.suffix not in (".cu", ".h"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "__syncthreads" in line.split("//")[0]:
                yield f"{path.name}:{number}"


def misses(build, place):
    """How a build's tests fail without the barrier: "race", "numbers", or None where they pass."""
    build = pathlib.Path(build).resolve()
    environment = dict(
        os.environ,
        EBB_TEST_DEVICE="cuda",
        EBB_CUDA_PART=str(build / "libebb_emulated_cuda.so"),
        EBB_EMULATED_WITHOUT=place,
        TSAN_OPTIONS="halt_on_error=1",
    )
    run = subprocess.run(
        ["./tests_ops", "[concurrent]~[host]", "--abort"],
        cwd=build / "tests", env=environment, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    return "race" if "ThreadSanitizer" in run.stdout + run.stderr else "numbers"


def main(builds):
    for build in builds:
        if failed := misses(build, "none"):
            sys.exit(f"{build}: the tests fail with all barriers ({failed})")
    unseen = []
    for place in barriers():
        found = next((failed for build in builds if (failed := misses(build, place))), None)
        reason = EXPLAINED.get(place, "")
        print(f"{place:24} {found or 'not missed'} {reason}", flush=True)
        if not found and not reason:
            unseen.append(place)
    sys.exit(f"not missed, and not explained: {', '.join(unseen)}" if unseen else 0)


if __name__ == "__main__":
    main(sys.argv[1:] or ["build/dev", "build/tsan"])
