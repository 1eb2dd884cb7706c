"""A part of gpu-check: commands with a log each, and what came of them so far, on disk.

Results are written anew every few seconds, so that whoever is cut off keeps all but the end:
NAME.json says what came of each command, NAME.tar.gz has the ends of the logs.
"""

import glob
import io
import json
import os
import resource
import signal
import subprocess
import tarfile
import time

ARCHIVE_BYTES = 16 * 2**20  # of all logs before they are compressed
EVERY = 5  # seconds


def end(process):
    """With all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def reason(log):
    """The line of a log that most likely says why its command failed."""
    with open(log, errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    return (telling or lines[-1:] or [""])[0][:300]


class Part:
    def __init__(self, name, out, work, seconds):
        self.name = name
        self.out = out
        self.work = os.path.join(work, name)  # of the logs, and of what commands write
        self.end = time.monotonic() + seconds
        self.result = {"part": name, "outcome": "cut off", "steps": []}
        self.embedded = {}  # key of the result: a pattern of the one file of JSON for it
        self.is_failed = False
        self.written = 0
        os.makedirs(self.out, exist_ok=True)
        os.makedirs(self.work, exist_ok=True)
        for file in os.listdir(self.work):
            os.remove(os.path.join(self.work, file))
        self.write()

    def file(self, name):
        return os.path.join(self.work, name)

    def left(self):
        return self.end - time.monotonic()

    def run(self, commands, jobs=1, environment=None):
        """A command for each name, so many at once; whether all of them passed."""
        waiting, running, passed = list(commands.items()), {}, True
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    step, process = self.start(*waiting.pop(0), environment)
                    running[process] = step
                time.sleep(0.05)
                for process in [p for p in running if p.poll() is not None or self.left() <= 0]:
                    passed = self.finish(running.pop(process), process, jobs) and passed
                self.renew()
        finally:
            for process in running:
                end(process)
        return passed

    def start(self, name, command, environment):
        step = {"name": name, "outcome": "cut off", "command": " ".join(command)}
        step["began"] = time.monotonic(), processor_seconds()
        self.result["steps"].append(step)
        with open(self.file(f"{name}.log"), "wb") as log:
            process = subprocess.Popen(
                ["env", *command],  # which says it too where there is no such program
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        return step, process

    def finish(self, step, process, jobs):
        if process.poll() is None:
            end(process)
        else:
            step["outcome"] = "passed" if process.returncode == 0 else "failed"
            step["exit_code"] = process.returncode
        began, spent = step.pop("began")
        step["seconds"] = round(time.monotonic() - began, 2)
        if jobs == 1:
            step["processor_seconds"] = round(processor_seconds() - spent, 1)
        if step["outcome"] != "passed":
            step["why"] = reason(self.file(f"{step['name']}.log"))
            self.is_failed = True
        self.say(step["outcome"], step["name"], step["seconds"], step.get("why", ""))
        self.write()
        return step["outcome"] == "passed"

    def leave_out(self, name, why):
        self.result["steps"].append({"name": name, "outcome": "left out", "why": why})
        self.say("left out", name, 0, why)

    def say(self, outcome, name, seconds, why):
        line = f"{outcome:<9} {self.name + ': ' + name:<28} {seconds:6.1f} s"
        print(f"{line}  {why}"[:160] if why else line, flush=True)

    def renew(self):
        if time.monotonic() - self.written >= EVERY:
            self.write()

    def close(self):
        is_left_out = all(step["outcome"] == "left out" for step in self.result["steps"])
        outcome = "left out" if is_left_out else "passed"
        self.result["outcome"] = "failed" if self.is_failed else outcome
        self.write()

    def write(self):
        for key, pattern in self.embedded.items():
            for file in glob.glob(pattern):
                with open(file) as text:
                    self.result[key] = json.load(text)
        told = [{k: v for k, v in step.items() if k != "began"} for step in self.result["steps"]]
        text = json.dumps(self.result | {"steps": told}, indent=1)
        self.replace(f"{self.name}.json", lambda file: file.write(text.encode()))
        self.replace(f"{self.name}.tar.gz", self.archive)
        self.written = time.monotonic()

    def replace(self, name, write):
        """Whole or not at all."""
        path = os.path.join(self.out, name)
        with open(path + ".new", "wb") as file:
            write(file)
        os.replace(path + ".new", path)

    def archive(self, file):
        names = sorted(os.listdir(self.work))
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in names:
                with open(self.file(name), "rb") as log:
                    log.seek(0, os.SEEK_END)
                    log.seek(max(0, log.tell() - ARCHIVE_BYTES // len(names)))
                    text = log.read(ARCHIVE_BYTES // len(names))
                entry = tarfile.TarInfo(f"{self.name}/{name}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))
