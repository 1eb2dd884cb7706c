"""Workers, and how they take turns: short runs, so that what else the machine does hits all."""

import json
import os
import statistics
import subprocess
import sys
import time

from steps.others import Others

FOLDER = os.path.dirname(os.path.abspath(__file__))
REST = 0.02  # seconds before each run, for the other workers' threads to fall asleep
QUIET = 0.15  # of a processor, at most, that other programs take in a round
# Relative, in the first ten steps. A rectifier at its kink moves those of the ResNet by 2e-4.
SAME_LOSS = {"f32": 1e-3, "tf32": 2e-3, "bf16": 3e-2}
LOSSES = 10


class Failed(Exception):
    pass


def ebb(build, *arguments):
    return [os.path.join(build, "benchmarks", "benchmark_step_worker"), *arguments]


def torch(*arguments):
    quiet = ["-W", "ignore:Failed to initialize NumPy"]  # which nothing here needs
    return [sys.executable, *quiet, os.path.join(FOLDER, "torch_worker.py"), *arguments]


class Worker:
    """A process that makes steps (step_worker.cpp says how one talks to it)."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds = []  # of a step, in each round
        self.steps = 1  # in a run
        self.warm_up = 1  # steps before each

    def tell(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which hearing tells

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name} ended early, with exit code {self.process.wait()}")
        return line.strip()

    def ask(self, command):
        self.tell(command)
        return json.loads(self.hear())

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()

    def choose_steps(self, seconds):
        trial = min(self.ask("run 3") for _ in range(3)) / 3
        self.steps = max(1, round(seconds / trial))

    def take_turn(self):
        time.sleep(REST)
        self.ask(f"run {self.warm_up}")  # brings its data back into the caches
        return self.ask(f"run {self.steps}") / self.steps

    def has_loaded(self, library):
        try:
            with open(f"/proc/{self.process.pid}/maps") as file:
                return any(library in line for line in file)
        except OSError:
            return False

    def median(self):
        return statistics.median(self.seconds)


def close(workers):
    for worker in workers.values():
        worker.close()


def hear_all(workers, optional=()):
    """What each says next; and of what has ended, which is no longer one of `workers` then, why.

    Throws Failed where that is not one of those that may.
    """
    said, lost = {}, {}
    for name in list(workers):
        try:
            said[name] = workers[name].hear()
        except Failed as error:
            if name not in optional:
                raise
            lost[name] = str(error)
            workers.pop(name).close()
    return said, lost


def start(commands, optional=()):
    """Starts a worker for each name and command, all at once. Returns the workers, and why
    the others did not start."""
    workers = {}
    try:
        for name, command in commands.items():
            workers[name] = Worker(name, command)
        return workers, hear_all(workers, optional)[1]
    except BaseException:
        close(workers)
        raise


def first_losses(workers, optional=()):
    for worker in workers.values():
        worker.tell(f"losses {LOSSES}")
    said, lost = hear_all(workers, optional)
    return {name: json.loads(line) for name, line in said.items()}, lost


def difference(losses, expected):
    """The largest relative difference; NaN counts as different."""
    differences = [abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True)]
    return max(d if d == d else float("inf") for d in differences)


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
