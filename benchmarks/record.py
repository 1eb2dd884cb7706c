"""What is written of a run of benchmarks: dated files."""

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


def write(folder, name, figures, text):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{figures['date']}-{name}")
    with open(path + ".json", "w") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")
    with open(path + ".md", "w") as file:
        file.write(f"# {figures['date']}, {name}\n\n```\n{text}\n```\n")
    print(f"\nWritten to {os.path.relpath(path)}.json and .md")
