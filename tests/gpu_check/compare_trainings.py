"""Trains the bundled examples on the CPU and on CUDA: the same losses, and the memory predicted.

    python3 compare_trainings.py EXAMPLES OUT
"""

import json
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "data")
PROGRAMS = {
    "train_mlp": ["--data", os.path.join(DATA, "digits.csv"), "--epochs", "3"],
    "train_lstm": ["--data", os.path.join(DATA, "sunspots.csv"), "--epochs", "2", "--hidden", "32",
                   "--length", "24"],
}
# Sums are made in another order, and a training carries that on: relative, of a loss.
SAME_LOSS = 2e-3


def train(examples, out, program, device, mode):
    path = os.path.join(out, f"{program}-{device}-{mode}.json")
    command = [os.path.join(examples, program), "--device", device, "--mode", mode, "--json", path]
    subprocess.run(command + PROGRAMS[program], check=True, stdout=subprocess.DEVNULL)
    with open(path) as file:
        return json.load(file)


def main():
    examples, out = sys.argv[1:]
    bad = 0

    def check(holds, words):
        nonlocal bad
        print("ok    " if holds else "FAILED", words)
        bad += not holds

    for program in PROGRAMS:
        for mode in ("graph", "eager"):
            cpu = train(examples, out, program, "cpu", mode)
            gpu = train(examples, out, program, "cuda", mode)
            losses = [(a["loss"], b["loss"]) for a, b in zip(cpu["epochs"], gpu["epochs"])]
            check(
                all(abs(a - b) <= SAME_LOSS * abs(a) for a, b in losses),
                f"{program}, {mode}: losses {losses}",
            )
            memory = gpu["memory"]
            check(
                memory["predicted_peak_bytes"] == memory["peak_bytes"],
                f"{program}, {mode}: peak {memory['peak_bytes']}, "
                f"predicted {memory['predicted_peak_bytes']}",
            )
            check(memory["after_close_bytes"] == 0, f"{program}, {mode}: all came back")
            print(f"       {gpu['steps_per_second']:.0f} steps a second, CPU {cpu['steps_per_second']:.0f}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
