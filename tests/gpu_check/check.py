"""Tries ebb on the GPU of this machine, part by part. ./ebb gpu-check runs it."""

import functools
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import libraries
from part import Part

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SECONDS = 590  # of a part, what it builds included
TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
IS_TRIAL = "EBB_CUDA_PART" in os.environ
BUILD = os.path.join(
    ROOT, "build", os.environ.get("EBB_GPU_CHECK_BUILD", "gpu-trial" if IS_TRIAL else "gpu")
)
OUT = os.environ.get("OUT", os.path.join(ROOT, "build", "gpu-check"))
WORK = os.path.join(BUILD, "gpu-check")
CUDA_PART = "ebb_emulated_cuda" if IS_TRIAL else "ebb_cuda"
# Folders of tests/ whose sources are no program, or one that a GPU has no part in.
NO_SUITES = {"allocator", "cuda", "docs", "emulated_cuda", "examples", "gpu_check", "install"}
NO_SUITES |= {"layering", "refused"}

HELP = """\
./ebb gpu-check [PART...]: builds and tries all of these on the GPU, or those named:

  facts       what ebb assumes of a GPU: libraries, addresses, pages, products,
              LSTMs, programs, floors
  suites      the test programs with the GPU as their device
  examples    the bundled trainings: losses beside the CPU's, memory as predicted
  steps       training steps beside PyTorch, where that is installed
  sanitizers  compute-sanitizer: memcheck over operators, each block a
              cudaMalloc; racecheck over kernels that use shared memory

Each takes ten minutes at most on 16 cores, what it builds included, and leaves
PART.json and PART.tar.gz, its logs, in build/gpu-check or in $OUT: up to then
if it is cut off. Nothing is installed or downloaded: ./ebb vendor collects what
is needed. EBB_CUDA_PART=libebb_emulated_cuda.so tries all but the sanitizers
without a GPU.
"""


def gpu():
    """Name, driver, compute capability and memory; empty where there is none."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total"]
    try:
        found = subprocess.run(
            [*command, "--format=csv,noheader"], check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [word.strip() for word in found.split("\n")[0].split(",")]


def commit():
    command = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True) if shutil.which("git") else None
    return found.stdout.strip() if found and found.returncode == 0 else None


@functools.cache
def environment():
    path = os.pathsep.join([os.environ.get("PATH", ""), os.path.join(TOOLKIT, "bin")])
    found = os.environ | {"PATH": path}
    nvcc = os.path.join(TOOLKIT, "bin", "nvcc")
    if not shutil.which("nvcc") and os.path.exists(nvcc):
        found = {"CUDACXX": nvcc} | found  # CMake looks on the path alone
    if IS_TRIAL:
        part = os.environ["EBB_CUDA_PART"]
        file = part if os.path.exists(part) else os.path.join(BUILD, part)
        return found | {"EBB_CUDA_PART": os.path.abspath(file)}
    return found | libraries.find()


def configure(part):
    """With everything that any part builds: which of it is built is said by its targets."""
    options = ["EBB_TESTS=ON", "EBB_EXAMPLES=ON", "EBB_BENCHMARKS=ON", "EBB_MICRO_BENCHMARKS=OFF"]
    if not IS_TRIAL:
        capability = gpu()[2].replace(".", "")
        options += ["EBB_CUDA=ON", f"EBB_CUDA_ARCHITECTURES={capability}", "EBB_EMULATED_CUDA=OFF"]
    generator = [] if shutil.which("ninja") else ["-G", "Unix Makefiles"]
    command = ["cmake", "-S", ROOT, "--preset", "release", "-B", BUILD, *generator]
    more = os.environ.get("EBB_CMAKE_ARGS", "").split()
    command += [f"-D{option}" for option in options] + more
    return part.run({"configure": command}, environment=environment())


def build(part, *targets):
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    command = ["cmake", "--build", BUILD, "--parallel", jobs, "--target", *targets]
    return configure(part) and part.run({"build": command}, environment=environment())


def program(*words):
    return os.path.join(BUILD, *words)


def facts(part):
    name = "gpu_facts_emulated" if IS_TRIAL else "gpu_facts"
    if build(part, name):
        part.embedded["facts"] = part.file("facts.json")
        command = [program("tests", "gpu_check", name), part.embedded["facts"]]
        part.run({"facts": command}, environment=environment())


def suites(part):
    tests = pathlib.Path(ROOT, "tests")
    folders = {source.relative_to(tests).parts[0] for source in tests.glob("*/**/*.cpp")}
    names = [f"tests_{folder}" for folder in sorted(folders - NO_SUITES)]
    if build(part, *names, CUDA_PART):
        commands = {name: [program("tests", name), "~[long]~[host]~[.]"] for name in names}
        # As many at once as share a GPU well.
        part.run(commands, jobs=4, environment=environment() | {"EBB_TEST_DEVICE": "cuda"})


def examples(part):
    if not build(part, "train_mlp", "train_lstm", "compare_memory", "custom_operator", CUDA_PART):
        return
    trainings = [sys.executable, os.path.join(ROOT, "tests", "gpu_check", "compare_trainings.py")]
    comparison = [program("examples", "compare_memory"), "--model", "mlp", "--device", "cuda"]
    comparison += ["--epochs", "1", "--data", os.path.join(ROOT, "examples", "data", "digits.csv")]
    commands = {
        "comparison": comparison,
        "trainings": [*trainings, program("examples"), part.work],
    }
    if IS_TRIAL:
        part.leave_out("custom_operator", "its kernel is that of a GPU")
    else:
        commands["custom_operator"] = [program("examples", "custom_operator"), "cuda"]
    part.run(commands, environment=environment())


def steps(part):
    if not importlib.util.find_spec("torch"):
        return part.leave_out("steps", "PyTorch is not installed: nothing to compare with")
    if build(part, "benchmark_step_worker", CUDA_PART):
        part.embedded["figures"] = part.file("*.json")
        script = os.path.join(ROOT, "benchmarks", "gpu.py")
        command = [sys.executable, script, "--out", part.work]
        part.run({"steps": command}, environment=environment() | {"EBB_BUILD": BUILD})


def sanitizers(part):
    tool = shutil.which("compute-sanitizer", path=environment()["PATH"])
    if IS_TRIAL or not tool:
        why = "needs a GPU" if IS_TRIAL else "compute-sanitizer is not installed"
        return part.leave_out("sanitizers", why)
    if not build(part, "tests_ops", "tests_optim", "tests_models", CUDA_PART):
        return
    # What CUDA refuses is no error: tests ask for what it has to refuse.
    command = [tool, "--error-exitcode", "9", "--report-api-errors", "no"]
    memcheck = [*command, "--launch-timeout", "120", "--tool", "memcheck"]
    # Of ebb's own kernels: libraries synchronise in ways that racecheck does not know.
    racecheck = [*command, "--tool", "racecheck", "--kernel-name", "kns=ebb"]
    part.run(
        {
            "racecheck_models": [*racecheck, program("tests", "tests_models"), "~[long]~[.]"],
            "memcheck_optim": [*memcheck, program("tests", "tests_optim"), "~[long]~[.]"],
            "memcheck_ops": [*memcheck, program("tests", "tests_ops"), "~[long]~[.]"],
            "racecheck_ops": [*racecheck, program("tests", "tests_ops"), "*value*"],
        },
        jobs=4,
        environment=environment() | {"EBB_TEST_DEVICE": "cuda", "EBB_CUDA_MEMORY": "block"},
    )


PARTS = {each.__name__: each for each in (facts, suites, examples, steps, sanitizers)}


def main(words):
    if words == ["help"]:
        print(HELP, end="")
        return 0
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"ebb: gpu-check has no part '{unknown[0]}'; it has: {', '.join(PARTS)}")
        return 2
    if not IS_TRIAL and not gpu():
        print("ebb: gpu-check finds no GPU (nvidia-smi names none)", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    is_failed = False
    for name in words or PARTS:
        part = Part(name, OUT, WORK, SECONDS)
        part.result |= {"commit": commit(), "gpu": gpu() or "emulated"}
        PARTS[name](part)
        part.close()
        is_failed = is_failed or part.is_failed
    print(f"Results and logs are in {os.path.relpath(OUT)}")
    return 1 if is_failed else 0


sys.exit(main(sys.argv[1:]))
