#!/usr/bin/env python3
"""Draws the table of plan_cluster, by matplotlib:  plan_cluster sim:cpu:4GiB | python3 docs/cluster.py FILE.png"""
import re
import sys

import matplotlib.pyplot as plt

GIB = {"B": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1, "TiB": 2**10}
figure, axes = plt.subplots(2, 1, figsize=(8, 8), layout="constrained")
ways = re.split("^sharded: ", sys.stdin.read(), flags=re.M)[1:]
for way in ways:
    name = way.split("\n")[0]
    rows = [line.split() for line in way.split("\n") if re.match(" *[0-9]+ ", line)]
    ranks = [int(row[0]) for row in rows]
    axes[0].plot(ranks, [float(row[1]) * GIB[row[2]] for row in rows], label=name)
    axes[1].plot(ranks, [float(row[-1]) for row in rows], label=name)
axes[0].set_title("GiB of a rank at the peak, by what is sharded, over the number of ranks")
axes[1].set_title("Seconds of a step, estimated")
for axis in axes:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xticks(ranks)
    axis.grid(alpha=0.3)
    axis.legend()
figure.savefig(sys.argv[1])
