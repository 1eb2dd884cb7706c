"""Writes reference.safetensors with the reference implementation (pip install numpy safetensors)."""

import pathlib

import numpy as np
from safetensors.numpy import save_file

save_file(
    {
        "f64": np.array([[0.1], [-2.5]], np.float64),
        "f32": np.array([1, 2, 3], np.float32),
        "f16": np.array([1.5], np.float16),
        "i64": np.array(1 << 40, np.int64),
        "i32": np.array([-7, 7], np.int32),
        "u8": np.array([0, 128, 255], np.uint8),
        "bool": np.array([True, False]),
        "empty": np.zeros((0, 4), np.float32),
    },
    pathlib.Path(__file__).with_name("reference.safetensors"),
    {"made by": "safetensors"},
)
