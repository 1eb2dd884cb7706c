"""Writes NumPy arrays as a safetensors file, with nothing but NumPy."""

import json
import struct

import numpy as np

NAMES = {
    "float16": "F16", "float32": "F32", "float64": "F64",
    "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL",
}


def write(path, arrays):
    # Wider elements first, so that each tensor is aligned to its own size.
    arrays = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header, at = {}, 0
    for name, array in arrays:
        header[name] = {
            "dtype": NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())
