"""Writes the results of a run of benchmarks into dated files."""

import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def commit():
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=HERE,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "of no commit"
    return described.stdout.strip()


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return "unknown CPU"


def write(folder, name, figures, text):
    """Writes whole files each time. Returns their name without .json and .md."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{figures['date']}-{name}")
    table = f"# {figures['date']}, {name}\n\n```\n{text}\n```\n"
    for end, words in ((".json", json.dumps(figures, indent=1) + "\n"), (".md", table)):
        with open(path + end + ".new", "w") as file:
            file.write(words)
        os.replace(path + end + ".new", path + end)
    return os.path.relpath(path)
