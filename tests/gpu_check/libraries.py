"""Where cuBLASLt, cuDNN and NVRTC are that the loader does not find by itself.

They may have come with PyTorch, or lie in a toolkit that no one told the loader of.
"""

import ctypes
import glob
import os
import site
import sys

WANTED = {
    "EBB_CUBLASLT_LIBRARY": ["libcublasLt.so.13", "libcublasLt.so.12"],
    "EBB_CUDNN_LIBRARY": ["libcudnn.so.9"],
    "EBB_NVRTC_LIBRARY": ["libnvrtc.so.13", "libnvrtc.so.12"],
}


def folders():
    packages = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
    for package in dict.fromkeys(packages):
        yield from sorted(glob.glob(os.path.join(package, "nvidia", "*", "lib")))
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    yield os.path.join(toolkit, "lib64")


def is_found(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def find():
    """The environment that names them to ebb."""
    found = {}
    for variable, names in WANTED.items():
        if os.environ.get(variable) or any(is_found(name) for name in names):
            continue
        files = [os.path.join(folder, name) for name in names for folder in folders()]
        found |= {variable: file for file in reversed(files) if os.path.exists(file)}
    return found
