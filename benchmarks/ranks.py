"""Measures data-parallel training steps: two ranks of one thread on this machine, and one process.

ebb over Open MPI beside PyTorch's DistributedDataParallel and FSDP2 over Gloo:

    EBB_BUILD=build/release python3 benchmarks/ranks.py
"""

import argparse
import os
import shutil
import sys
import tempfile

import torch

import record
from steps import inputs, worker

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 2


def arguments():
    parser = argparse.ArgumentParser(description="Data-parallel training steps, beside PyTorch's.")
    models = ["mlp", "lstm", "gpt"]
    parser.add_argument("--models", nargs="+", choices=models, default=models)
    parser.add_argument("--rounds", type=int, default=15, help="runs of each worker")
    parser.add_argument("--seconds", type=float, default=0.3, help="a run's length")
    return parser.parse_args()


def launched(command, path):
    """Of all ranks. Open MPI gives rank 0 the commands; a pipe of this path passes them on."""
    os.mkfifo(path)
    hears = f'if [ $OMPI_COMM_WORLD_RANK = 0 ]; then tee {path} | "$@"; else exec "$@" <{path}; fi'
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    launcher = [mpirun, "-n", str(RANKS), "--bind-to", "none", "sh", "-c", hears, "sh"]
    return [*launcher, *command]


def commands(model, build, weights):
    """By number of ranks and name."""
    common = ["--model", inputs.MODELS[model].kind, "--weights", weights, "--mode"]
    alone = {
        "ebb graph": worker.ebb(build, *common, "graph"),
        "ebb eager": worker.ebb(build, *common, "eager"),
        "PyTorch": worker.torch(*common, "fused"),
    }
    result = {(1, name): command for name, command in alone.items()}
    for how, flags in {"": ["--ranks"], " shares": ["--ranks", "--shares"]}.items():
        for name, command in alone.items():
            path = f"{weights}.{len(result)}"
            result[RANKS, name + how] = launched([*command, *flags], path)
    return result


def race(model, build, weights, rounds, seconds):
    """Returns a table."""
    workers, _ = worker.start(commands(model, build, weights))
    try:
        losses, _ = worker.first_losses(workers)
        expected = losses[1, "PyTorch"]
        difference = max(worker.difference(values, expected) for values in losses.values())
        if difference > worker.SAME_LOSS["f32"]:
            raise worker.Failed(f"the losses differ: {losses}")
        for one in workers.values():
            one.choose_steps(seconds)
        _, others = worker.take_turns(workers, rounds)
        peaks = {key: one.ask("memory")["peak_bytes"] for key, one in workers.items()}
    finally:
        worker.close(workers)

    def gain(one, over):
        return worker.quartiles([b / a for a, b in zip(one.seconds, over.seconds)])

    lines = [
        inputs.MODELS[model].title,
        f"{'ranks':<6}{'':<19}{'steps/s':>8}  {'x PyTorch (quartiles)':<22}"
        f"{'x one process':>13}{'MiB a rank':>12}",
    ]
    for (ranks, name), one in workers.items():
        how = " shares" if name.endswith("shares") else ""
        ratio = gain(one, workers[ranks, "PyTorch" + how])
        speed = f"{ratio['median']:.2f} ({ratio['low']:.2f}-{ratio['high']:.2f})"
        lines.append(
            f"{ranks:<6}{name:<19}{1 / one.median():>8.2f}  {speed:<22}"
            f"{gain(one, workers[1, name.removesuffix(how)])['median']:>13.2f}{peaks[ranks, name] / 2**20:>12.1f}"
        )
    lines.append(
        f"  losses within {difference:.0e}; other programs took up to {others:.1f} processors"
    )
    return "\n".join(lines)


def main():
    options = arguments()
    build = os.environ.get("EBB_BUILD", os.path.join(HERE, "..", "build", "release"))
    print(f"{record.cpu_name()}; ebb {record.commit()}, PyTorch {torch.__version__}\n")
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            weights = os.path.join(folder, "weights.safetensors")
            inputs.write(model, weights)
            table = race(model, build, weights, options.rounds, options.seconds)
        print(table, end="\n\n", flush=True)


try:
    main()
except worker.Failed as error:
    sys.exit(f"ranks: {error}")
except FileNotFoundError as error:
    sys.exit(f"ranks: {error.filename} is missing")
