#!/usr/bin/env python3
"""Writes digits.csv, sunspots.csv and alice.txt beside this file.

Needs scikit-learn and pmdarima, which carry the two data sets, and as its argument the alice29.txt of
the sources of snappy (`apt-get source snappy`); README.md says where they come from.
"""

import csv
import hashlib
import pathlib
import sys

import pmdarima.datasets
import sklearn.datasets

HERE = pathlib.Path(__file__).resolve().parent


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows")


def digits():
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    assert images.shape == (1797, 64) and (images == images.astype(int)).all()
    header = [f"pixel_{i}" for i in range(64)] + ["digit"]
    write("digits.csv", header, [[*map(int, image), int(label)] for image, label in zip(images, labels)])


def sunspots():
    values = pmdarima.datasets.load_sunspots()
    rows = [(f"{1749 + i // 12}-{i % 12 + 1:02}", f"{value:.1f}") for i, value in enumerate(values)]
    assert all(float(text) == value for (_, text), value in zip(rows, values)), "more than one decimal"
    write("sunspots.csv", ["month", "sunspots"], rows)


def alice(source):
    data = pathlib.Path(source).read_bytes()
    assert hashlib.sha256(data).hexdigest() == "7467306ee0feed4971260f3c87421154a05be571d944e9cb021a5713700c38f0"
    # The source has line ends and the end of file of DOS.
    text = data.decode("ascii").rstrip("\x1a").replace("\r\n", "\n").strip("\n") + "\n"
    (HERE / "alice.txt").write_text(text, newline="\n")
    print(f"alice.txt: {len(text)} characters")


if __name__ == "__main__":
    digits()
    sunspots()
    alice(sys.argv[1])
