#!/usr/bin/env python3
"""Writes digits.csv and sunspots.csv beside this file.

Needs scikit-learn and pmdarima, which carry the two data sets; README.md says where they come from.
"""

import csv
import pathlib

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


if __name__ == "__main__":
    digits()
    sunspots()
