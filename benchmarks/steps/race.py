"""Runs workers against each other: short runs in turn, so that what else the machine does hits all."""

import json
import os
import statistics
import subprocess
import sys
import time

from steps.others import Others

FOLDER = os.path.dirname(os.path.abspath(__file__))
EBB = {"ebb graph": "graph", "ebb eager": "eager"}
PEER = {"PyTorch default": "default", "PyTorch foreach": "foreach", "PyTorch fused": "fused"}
BOUND = {"products": "products", "fastest": "fastest", "stream": "stream"}
REST = 0.02  # seconds before each run, for the other workers' threads to fall asleep
QUIET = 0.15  # of a processor, at most, that other programs take in a round
SAME_LOSS = 1e-4  # relative, in the first ten steps


class Failed(Exception):
    pass


class Worker:
    """A process that makes steps (step_worker.cpp says how one talks to it)."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds = []  # of a step, in each round
        self.steps = 1  # in a run
        if self.read() != "ready":
            raise Failed(f"{name} did not start")

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name} ended early, with exit code {self.process.wait()}")
        return line.strip()

    def ask(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which reading tells
        return json.loads(self.read())

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()

    def take_turn(self):
        time.sleep(REST)
        self.ask("run 1")  # brings its data back into the caches
        return self.ask(f"run {self.steps}") / self.steps

    def has_loaded(self, library):
        try:
            with open(f"/proc/{self.process.pid}/maps") as file:
                return any(library in line for line in file)
        except OSError:
            return False

    def median(self):
        return statistics.median(self.seconds)


def start(model, threads, build, weights):
    ours = [os.path.join(build, "benchmarks", "benchmark_step_worker")]
    ours += ["--model", model, "--threads", str(threads), "--weights", weights, "--mode"]
    torch = [sys.executable, os.path.join(FOLDER, "torch_worker.py"), model]
    workers = {}
    try:
        for name, mode in (EBB | BOUND).items():
            workers[name] = Worker(name, ours + [mode])
        for name, adam in PEER.items():
            workers[name] = Worker(name, torch + [adam, str(threads), weights])
    except BaseException:
        close(workers)
        raise
    return workers


def close(workers):
    for worker in workers.values():
        worker.close()


def check_losses(workers):
    """The largest relative difference from PyTorch in the first ten steps."""
    for worker in workers.values():
        worker.ask("run 10")
    losses = {name: workers[name].ask("losses")[:10] for name in EBB | PEER}
    expected = losses["PyTorch default"]
    worst = 0
    for name, values in losses.items():
        difference = max(abs(a - b) / abs(b) for a, b in zip(values, expected))
        if not difference <= SAME_LOSS:
            raise Failed(f"{name} learns something else: losses {values}, PyTorch's {expected}")
        worst = max(worst, difference)
    return worst


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"low": low, "median": middle, "high": high}


def take_turns(workers, rounds):
    """Rounds that other programs disturb are repeated, up to as many as are wanted.

    Where two threads wait for each other and one has lost its processor, times say nothing of the
    program. Whether a round counts is decided without a look at its times. Returns the number of
    rounds repeated, and the processors that others took in the worst round that counts.
    """
    repeated, worst = 0, 0.0
    order = list(workers.values())
    while len(order[0].seconds) < rounds:
        order.reverse()
        others = Others([worker.process.pid for worker in order])
        times = [worker.take_turn() for worker in order]
        share = others.share()
        if share > QUIET and repeated < rounds:
            repeated += 1
            continue
        worst = max(worst, share)
        for worker, seconds in zip(order, times):
            worker.seconds.append(seconds)
    return repeated, worst


def race(model, threads, build, weights, rounds, seconds):
    """One configuration: everything measured, as a dictionary."""
    workers = start(model, threads, build, weights)
    try:
        difference = check_losses(workers)
        gemm = "oneDNN" if workers["ebb graph"].has_loaded("libdnnl") else "Eigen"
        for worker in workers.values():
            trial = min(worker.ask("run 3") for _ in range(3)) / 3
            share = seconds if worker.name not in BOUND else seconds / 3
            worker.steps = max(1, round(share / trial))
        disturbed, others = take_turns(workers, rounds)
        memory = {name: workers[name].ask("memory") for name in EBB | PEER}
        operations = {name: workers[name].ask("operations") for name in ("products", "fastest")}
    finally:
        close(workers)

    peer = min(PEER, key=lambda name: workers[name].median())
    rate = operations["fastest"] / workers["fastest"].median()
    products, stream = workers["products"].median(), workers["stream"].median()
    result = {
        "model": model,
        "threads": threads,
        "largest_loss_difference": difference,
        "peer": peer,
        "ebb_products_by": gemm,
        "rounds_repeated": disturbed,
        "processors_others_took": others,
        "quiet": others <= QUIET,
        "bound": {
            "products_seconds": products,
            "stream_seconds": stream,
            "operations": operations["products"],
            "fastest_operations_per_second": rate,
        },
        "workers": {},
    }
    for name in EBB | PEER:
        worker = workers[name]
        ratios = [b / a for a, b in zip(worker.seconds, workers[peer].seconds)]
        result["workers"][name] = {
            "step_seconds": worker.median(),
            "speed_beside_peer": quartiles(ratios),
            "share_of_bound": (products + stream) / worker.median(),
            "share_of_fastest": (operations["products"] / rate + stream) / worker.median(),
            "memory": memory[name],
            "steps_in_a_run": worker.steps,
            "runs_step_seconds": worker.seconds,
        }
    return result
