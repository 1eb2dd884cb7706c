"""Opens event files with TensorBoard: python tensorboard_events.py RUN RECORDING.json TRAINING...

RUN is the folder of one run that write_tensorboard() made, RECORDING.json what write_json() made of the same recording.
The command TRAINING is run with --tensorboard, watched by a running TensorBoard and killed.

With TensorBoard 2.21.0, 301 steps of 10 tags are the recording's, byte for byte, and its HTTP interface serves the same; it
follows a training, and reads every whole record of one that was killed.
"""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def check(what, is_so, *told):
    if not is_so:
        sys.exit(f"{what}: failed {' '.join(map(str, told))}")
    print(what)


def replayed(recording):
    """Nanoseconds of each step, and the values of each tag by step."""
    assert not recording["samples"]
    kinds, categories = recording["kinds"], recording["categories"]
    held = [recording["before"]["allocated_bytes"].get(name, 0) for name in categories]
    reserved = recording["before"]["reserved_bytes"]
    peak, times, curves = list(held), [], {}
    for i, row in enumerate(recording["events"]):
        nanoseconds, kind, _, count, category, old = row[:6]
        kind = kinds[kind]
        if kind in ("allocate", "recategorise"):
            held[category] += count
        if kind in ("free", "recategorise"):
            held[old] -= count
        reserved += {"map": count, "unmap": -count}.get(kind, 0)
        if sum(held) > sum(peak):
            peak = list(held)
        if kind == "step" or i + 1 == len(recording["events"]):
            times.append(nanoseconds)
            figures = {"memory/allocated": sum(held), "memory/reserved": reserved, "memory/peak": sum(peak)}
            figures |= {f"peak/{name}": peak[c] for c, name in enumerate(categories)}
            for tag, value in figures.items():
                curves.setdefault(tag, []).append((len(times), value))
            peak = list(held)
    return times, curves


def read(folder):
    """The events of each tag, as TensorBoard keeps them."""
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: accumulator.Scalars(tag) for tag in accumulator.Tags()["scalars"]}


@contextlib.contextmanager
def tensorboard(folder):
    """Runs TensorBoard; gives a function that asks it."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--port", "0", "--reload_interval", "1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = next(filter(None, (re.search(r"http://\S+", line) for line in server.stderr))).group()

        def ask(path, **arguments):
            with urllib.request.urlopen(f"{address}data/plugin/scalars/{path}?{urllib.parse.urlencode(arguments)}") as answer:
                return json.load(answer)

        yield ask
    finally:
        server.terminate()
        server.wait()


def until(what, condition):
    end = time.monotonic() + 60
    while not (is_so := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    check(what, is_so)


run, recording = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
times, expected = replayed(recording)
events = read(run)
found = {tag: [(event.step, event.value) for event in curve] for tag, curve in events.items()}
check(f"{len(times)} steps of {len(expected)} tags are the recording's", found.items() >= expected.items(), found, expected)
worst = max(abs((event.wall_time - curve[0].wall_time) - (times[event.step - 1] - times[0]) / 1e9)
            for curve in events.values() for event in curve)
check("times are the recording's", worst < 1e-3, worst)  # each reading measures the clock's rate again

with tensorboard(run.parent) as ask:
    until("TensorBoard lists the run", lambda: run.name in ask("tags"))
    shown = {tag: [(step, value) for _, step, value in ask("scalars", run=run.name, tag=tag)] for tag in found}
    check("TensorBoard serves the same points", shown == found, shown)

with tempfile.TemporaryDirectory() as folder, tensorboard(folder) as ask:
    training = subprocess.Popen([*sys.argv[3:], "--tensorboard", folder], stdout=subprocess.DEVNULL)

    def last_step():
        names = list(ask("tags"))
        return ask("scalars", run=names[0], tag="loss/training")[-1][1] if names else 0

    until("TensorBoard shows a running training", lambda: last_step() > 0)
    seen = last_step()
    until("and follows it", lambda: last_step() > seen)
    check("which still runs", training.poll() is None)
    training.send_signal(signal.SIGKILL)
    training.wait()
    (file,) = pathlib.Path(folder).glob("*/events.out.tfevents.*")
    whole = read(file.parent)["memory/peak"]
    check("a killed training leaves every step up to its last", [event.step for event in whole] == list(range(1, len(whole) + 1)))
    file.write_bytes(file.read_bytes()[:-3])
    torn = read(file.parent)
    check("half a record at the end is no harm", [event.step for event in torn["memory/allocated"]] ==
          list(range(1, len(torn["memory/allocated"]) + 1)) and len(torn["memory/allocated"]) >= len(whole) - 1)
