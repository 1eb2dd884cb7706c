"""Measures training steps on a GPU, ebb beside PyTorch. Run by `./ebb gpu-check steps`.

Needs PyTorch alone. Without a GPU, `--device cpu` tries it, and so does EBB_CUDA_PART with ebb's
emulated device, beside PyTorch on the CPU.
"""

import argparse
import datetime
import os
import subprocess
import sys
import tempfile

import torch

import gpu_report
import record
from steps import gpu_race, inputs
from steps.worker import Failed, ebb

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["mlp", "mlp-large", "lstm-128", "lstm", "lstm-large", "gpt-2", "resnet-18"]
TRIAL = ["mlp-tiny", "lstm-tiny", "gpt-tiny", "resnet-tiny"]
PRECISIONS = ["f32", "tf32", "bf16"]


def arguments():
    parser = argparse.ArgumentParser(description="Training steps on a GPU, beside PyTorch's.")
    parser.add_argument("--out", default=os.path.join(HERE, "results"), help="folder")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (to try it)")
    parser.add_argument("--models", nargs="+", choices=MODELS + TRIAL)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    parser.add_argument("--rounds", type=int, help="runs of each worker")
    parser.add_argument("--seconds", type=float, help="a run's length")
    parsed = parser.parse_args()
    # A trial of the programs: nothing measured there is worth a wait.
    trial = parsed.device == "cpu" or "EBB_CUDA_PART" in os.environ
    parsed.models = parsed.models or (TRIAL if trial else MODELS)
    parsed.rounds = parsed.rounds or (2 if trial else 7)
    parsed.seconds = parsed.seconds or (0.02 if trial else 0.2)
    parsed.side, parsed.floats = (256, 2**18) if trial else (8192, 2**26)
    if parsed.rounds < 2 or parsed.threads < 1 or parsed.seconds <= 0:
        parser.error("at least two rounds, one thread and some time")
    return parsed


def peer_device(device):
    if device == "cpu" or torch.cuda.is_available():
        return device
    if "EBB_CUDA_PART" in os.environ:
        return "cpu"
    raise Failed("PyTorch finds no GPU here; --device cpu tries the programs without one")


def precisions(wanted, build, device):
    """The precisions to measure, and the reasons of the ones left out."""
    command = ebb(build, "--precisions")
    known = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    left_out = {p: "ebb has none yet" for p in wanted if p not in known}
    if device == "cpu":
        left_out |= {p: "not on a CPU" for p in wanted if p == "tf32"}
    return [p for p in wanted if p not in left_out], left_out


def driver():
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.split("\n")[0].strip()


def names(device):
    """Names of the devices of ebb and PyTorch."""
    if not device.startswith("cuda"):
        return "the CPU", "the CPU"
    gpu = torch.cuda.get_device_name(device) if torch.cuda.is_available() else "the CPU"
    return "an emulated GPU" if "EBB_CUDA_PART" in os.environ else gpu, gpu


def main():
    options = arguments()
    build = os.environ.get("EBB_BUILD", os.path.join(HERE, "..", "build", "release"))
    on_peer = peer_device(options.device)
    measured, left_out = precisions(options.precisions, build, options.device)
    ours, theirs = names(options.device)
    figures = {
        "date": datetime.date.today().isoformat(),
        "ebb_device": ours,
        "torch_device": theirs,
        "driver": driver(),
        "versions": {
            "ebb": record.commit(),
            "torch": torch.__version__,
            "cuda_of_torch": torch.version.cuda,
            "python": sys.version.split()[0],
        },
        "rounds": options.rounds,
        "seconds_a_run": options.seconds,
        "left_out": left_out,
        "rates": {},
        "steps": [],
    }
    text, failed = [], []
    name = ours.removeprefix("the ").removeprefix("an ").lower().replace(" ", "-")

    def say(block):
        """Prints the text, and writes all results so far: a later model may take too long."""
        text.append(block)
        print(block, end="\n\n", flush=True)
        return record.write(options.out, name, figures, "\n\n".join(text))

    for precision in measured:
        setting = gpu_race.Setting(
            build=build,
            device=options.device,
            peer_device=on_peer,
            precision=precision,
            threads=options.threads,
            rounds=options.rounds,
            seconds=options.seconds,
        )
        rates = gpu_race.rates(setting, options.side, options.floats)
        figures["rates"][precision] = rates
        say(gpu_report.machine(rates))
        for model in options.models:
            with tempfile.TemporaryDirectory() as folder:
                weights = os.path.join(folder, "weights.safetensors")
                try:
                    result = gpu_race.race(model, setting, weights, rates)
                except Failed as error:
                    failed.append(f"{inputs.MODELS[model].title}, {precision}: {error}")
                    say(f"FAILED  {failed[-1]}")
                    continue
            figures["steps"].append(result)
            failed += [name for name, one in result["workers"].items() if not one["agrees"]]
            say(gpu_report.race(result))
    for precision, reason in left_out.items():
        say(f"{precision}: left out, {reason}")
    say(gpu_report.EXPLANATION)
    path = say(gpu_report.about(figures))
    print(f"\nWritten to {path}.json and .md")
    return 1 if failed else 0


try:
    sys.exit(main())
except Failed as error:
    sys.exit(f"gpu.py: {error}")
except subprocess.CalledProcessError as error:
    sys.exit(f"gpu.py: {error}\n{error.stderr or ''}")
except FileNotFoundError as error:
    sys.exit(f"gpu.py: {error.filename} is missing; ./ebb gpu-check builds it")
except KeyboardInterrupt:
    sys.exit(130)
