"""Reads and writes safetensors files with nothing but PyTorch, which may be all a machine has."""

import json
import os
import struct

import torch

NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def write(path, tensors):
    # Wider elements first, so that each tensor is aligned to its own size.
    tensors = sorted(tensors.items(), key=lambda item: -item[1].element_size())
    header, at = {}, 0
    for name, tensor in tensors:
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.nbytes],
        }
        at += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    file = torch.from_file(path, shared=True, size=start + at, dtype=torch.uint8)
    file[:start] = torch.frombuffer(
        bytearray(struct.pack("<Q", len(text)) + text), dtype=torch.uint8
    )
    for name, tensor in tensors:
        begin, end = (start + offset for offset in header[name]["data_offsets"])
        file[begin:end] = tensor.contiguous().flatten().view(torch.uint8)


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    values = torch.from_file(path, size=os.path.getsize(path), dtype=torch.uint8)[8 + length :]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = values[begin:end].view(DTYPES[entry["dtype"]]).view(entry["shape"])
    return tensors
