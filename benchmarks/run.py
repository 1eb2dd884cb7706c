"""Measures what ebb costs: dispatch, cost laws, fragmentation, and whole steps beside PyTorch.

Run by `./ebb bench`, which builds the programs and makes the Python environment.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile

import torch

import record
import report
from micro import dispatch
from steps import inputs, libtorch, race
from steps.worker import Failed

MODELS = ["mlp", "lstm", "gpt", "resnet"]
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = argparse.ArgumentParser(
        prog="./ebb bench", description="Dispatch, cost laws, fragmentation, whole steps."
    )
    parts = ["micro", "growth", "fragmentation", "steps"]
    parser.add_argument("--only", choices=parts, help="one of the parts")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each worker")
    parser.add_argument("--seconds", type=float, default=0.3, help="a run's length")
    parser.add_argument("--results", default=os.path.join(HERE, "results"), help="folder")
    parser.add_argument("--name", help="of the results (default: cpu-<cores>cores)")
    parsed = parser.parse_args()
    if parsed.rounds < 2 or min(parsed.threads) < 1 or parsed.seconds <= 0:
        parser.error("at least two rounds, one thread and some time")
    return parsed


def tables(build, name):
    """Returns the tables that a program prints by itself, and its figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        program = os.path.join(build, "benchmarks", "benchmark_" + name)
        output = subprocess.run(
            [program, "--json", path], check=True, capture_output=True, text=True
        ).stdout
        with open(path) as file:
            return output.strip(), json.load(file)


def main():
    options = arguments()
    build = os.environ.get("EBB_BUILD", os.path.join(HERE, "..", "build", "release"))
    cores = len(os.sched_getaffinity(0))
    figures = {
        "date": datetime.date.today().isoformat(),
        "cpu": record.cpu_name(),
        "cores": cores,
        "load": [os.getloadavg()[0]],
        "versions": {
            "ebb": record.commit(),
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
        "rounds": options.rounds,
        "seconds_a_run": options.seconds,
    }
    text = []

    def say(block):
        text.append(block)
        print(block, end="\n\n", flush=True)

    if options.only in (None, "micro"):
        figures["micro_ns"] = dispatch.measure(build, options.seconds)
        say(report.micro(figures["micro_ns"]))
    for name in ("growth", "fragmentation"):
        if options.only in (None, name):
            printed, figures[name] = tables(build, name)
            say(printed)
    if options.only in (None, "steps"):
        figures["steps"] = []
        try:
            program = libtorch.build(build)
        except Failed as error:
            program = None
            say(f"{race.CPP}: left out, {error}")
        with tempfile.TemporaryDirectory() as folder:
            for model in options.models:
                weights = os.path.join(folder, f"{model}.safetensors")
                inputs.write(model, weights)
                for threads in options.threads:
                    if threads > cores:
                        say(f"{threads} threads: left out, there are {cores} cores")
                        continue
                    result = race.race(
                        model, threads, build, weights, program, options.rounds, options.seconds
                    )
                    figures["steps"].append(result)
                    say(report.steps(result))
        say(report.EXPLANATION)
    figures["load"].append(os.getloadavg()[0])
    say(report.machine(figures))
    name = options.name or f"cpu-{figures['cores']}cores"
    path = record.write(options.results, name, figures, "\n\n".join(text))
    print(f"\nWritten to {path}.json and .md")


try:
    main()
except Failed as error:
    sys.exit(f"ebb bench: {error}")
except subprocess.CalledProcessError as error:
    sys.exit(f"ebb bench: {error}\n{error.stderr or ''}")
except FileNotFoundError as error:
    sys.exit(f"ebb bench: {error.filename} is missing; ./ebb bench builds it")
except KeyboardInterrupt:
    sys.exit(130)
