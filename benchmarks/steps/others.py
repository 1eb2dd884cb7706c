"""Measures how busy other programs keep this process's processors, from Linux's /proc."""

import glob
import os
import time


def ticks_of_processors():
    """Time busy, or stolen from a virtual machine; waiting does not count."""
    mine = {f"cpu{i}" for i in os.sched_getaffinity(0)}
    busy = 0
    with open("/proc/stat") as file:
        for line in file:
            name, *numbers = line.split()
            if name in mine:
                user, nice, system, _idle, _wait, irq, soft, steal = map(int, numbers[:8])
                busy += user + nice + system + irq + soft + steal
    return busy


def ticks_of(process):
    """Of the process, and of those that it has started where it is a launcher."""
    started = []
    for path in glob.glob(f"/proc/{process}/task/*/children"):
        with open(path) as file:
            started += file.read().split()
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) + sum(map(ticks_of, started))


class Others:
    """The share of one processor that others took since construction."""

    def __init__(self, processes):
        self.processes = [*processes, os.getpid()]
        self.start = self.now()
        self.started = time.monotonic()

    def now(self):
        try:
            return ticks_of_processors() - sum(map(ticks_of, self.processes))
        except (OSError, ValueError):
            return 0  # no such /proc: nothing is known

    def share(self):
        seconds = (self.now() - self.start) / os.sysconf("SC_CLK_TCK")
        return max(0, seconds / (time.monotonic() - self.started))
