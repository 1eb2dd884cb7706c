"""Builds torch_worker.cpp against the PyTorch that this Python imports."""

import os
import subprocess

import torch

from steps.worker import FOLDER, Failed


def build(folder):
    """Builds what has changed. Returns the program's path; throws Failed without a compiler."""
    folder = os.path.join(folder, "benchmarks", f"torch-{torch.__version__}")
    os.makedirs(folder, exist_ok=True)
    try:
        from torch.utils import cpp_extension  # needs more packages than torch

        return cpp_extension.load(
            "torch_worker",
            [os.path.join(FOLDER, "torch_worker.cpp")],
            extra_cflags=["-O2"],
            build_directory=folder,
            with_cuda=False,
            is_python_module=False,
            is_standalone=True,
        )
    except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        lines = str(error).splitlines()
        raise Failed(next((line for line in lines if "error:" in line), lines[0])) from None
