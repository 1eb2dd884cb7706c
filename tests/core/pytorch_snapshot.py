"""Opens a snapshot with PyTorch's own reader: python pytorch_snapshot.py snapshot.pickle

Prints what the reader makes of it, and writes trace_plot.html, which a browser draws with PyTorch's page from the network.
"""

import importlib.util
import pathlib
import pickle
import pickletools
import runpy
import sys

# The opcodes that torch/utils/viz/MemoryViz.js knows.
KNOWN = set(
    "PROTO STOP MARK EMPTY_DICT EMPTY_LIST APPEND APPENDS SETITEM SETITEMS BINGET LONG_BINGET BINPUT LONG_BINPUT"
    " BINUNICODE BININT BININT1 BININT2 LONG1 NEWTRUE NEWFALSE NONE BINFLOAT TUPLE1 TUPLE2 TUPLE3 EMPTY_TUPLE".split()
)

torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent  # found and not imported: it needs CUDA's libraries
reader = runpy.run_path(str(torch / "cuda" / "_memory_viz.py"))
with open(sys.argv[1], "rb") as file:
    text = file.read()
unknown = {opcode.name for opcode, _, _ in pickletools.genops(text)} - KNOWN
assert not unknown, unknown
snapshot = pickle.loads(text)
print(reader["segsum"](snapshot).split("\n\nLegend")[0])
print(reader["memory"](snapshot, lambda lines: lines), end="")
for device, lines in enumerate(reader["trace"](snapshot).split("Device ")[1:]):
    print(f"device {device}: {lines.count('= ')} allocations, {lines.count('del ')} frees")
with open("trace_plot.html", "w") as file:
    file.write(reader["trace_plot"](snapshot))
