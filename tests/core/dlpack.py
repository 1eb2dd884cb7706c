"""Exchanges tensors with NumPy, PyTorch, JAX and TensorFlow, those that are installed, through a library made from ebb:

    python3 tests/core/dlpack.py $(pkg-config --cflags --libs --static ebb)

Values and addresses are equal, updates are seen on both sides, and memory lives as long as its last user. Prints a line
for each peer.
"""

import ctypes
import gc
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = r"""
#include <string>
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
using namespace ebb;
namespace {
Tensor held;  // the tensor under way
const char* told(auto run) {
  static std::string text;
  try {
    run();
    text = std::to_string(reinterpret_cast<std::uintptr_t>(detail::data(held)));
    for (const float value : cast(held, DType::f32).to_vector<float>()) text += " " + std::to_string(value);
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}
}  // namespace
extern "C" {
const char* make(int dtype) { return told([=] { held = cast(Tensor::from({0, 1, 1}), DType(dtype)); }); }
const char* take(DLManagedTensor* theirs) { return told([=] { held = from_dlpack(theirs); }); }
const char* take_versioned(DLManagedTensorVersioned* theirs) { return told([=] { held = from_dlpack(theirs); }); }
const char* update() { return told([] { assign(held, ones_like(held)); }); }
const char* values() { return told([] {}); }
DLManagedTensorVersioned* give() { return to_dlpack(held); }
DLManagedTensor* give_unversioned() { return to_dlpack_unversioned(held); }
void drop() { held = Tensor(); }
const char* figures() { static std::string text; return (text = memory::summary_json(Device::cpu())).c_str(); }
}
"""
DTYPES = "float32 float64 float16 bfloat16 int32 int64 uint8 bool".split()  # in the order of DType

with tempfile.TemporaryDirectory() as folder:
    source, library = pathlib.Path(folder, "exchange.cpp"), pathlib.Path(folder, "exchange.so")
    source.write_text(SOURCE)
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", source, "-o", library, *sys.argv[1:]], check=True)
    ebb = ctypes.CDLL(library)
for function in (ebb.make, ebb.take, ebb.take_versioned, ebb.update, ebb.values, ebb.figures):
    function.restype = ctypes.c_char_p
ebb.take.argtypes = ebb.take_versioned.argtypes = [ctypes.c_void_p]
ebb.give.restype = ebb.give_unversioned.restype = ctypes.c_void_p
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
# Names of a capsule, which refers to them.
UNUSED = b"dltensor", b"dltensor_versioned"
USED = b"used_dltensor", b"used_dltensor_versioned"


class Ours:
    """The tensor that ebb holds."""

    def __dlpack__(self, max_version=(0, 8), **_):
        versioned = max_version >= (1, 0)
        pointer = ebb.give() if versioned else ebb.give_unversioned()
        Ours.given = python.PyCapsule_New(pointer, UNUSED[versioned], None)
        return Ours.given

    def __dlpack_device__(self):
        return 1, 0


def take(capsule):
    versioned = python.PyCapsule_IsValid(capsule, UNUSED[1])
    pointer = python.PyCapsule_GetPointer(capsule, UNUSED[versioned])
    python.PyCapsule_SetName(capsule, USED[versioned])
    return (ebb.take_versioned if versioned else ebb.take)(pointer).decode()


def address(theirs):  # the first member of a tensor of DLPack
    capsule = theirs.__dlpack__()
    return ctypes.c_size_t.from_address(python.PyCapsule_GetPointer(capsule, b"dltensor")).value


def bytes_now():
    gc.collect()
    figures = json.loads(ebb.figures())
    return figures["allocated_bytes"]["current"], figures["borrowed_bytes"]


def told(address, values):
    return " ".join([str(address)] + [f"{value:.6f}" for value in values])


# How each peer makes a tensor, reads it and takes ours.
PEERS = {
    "numpy": (lambda m, d: m.array([0, 1, 0], d), lambda m, x: x.astype("f4").tolist(), lambda m: m.from_dlpack(Ours())),
    "torch": (
        lambda m, d: m.tensor([0, 1, 0], dtype=getattr(m, d)),
        lambda m, x: x.float().tolist(),
        lambda m: m.from_dlpack(Ours()),
    ),
    "jax.numpy": (
        lambda m, d: m.array([0, 1, 0], d),
        lambda m, x: x.astype("float32").tolist(),
        lambda m: m.from_dlpack(Ours()),
    ),
    "tensorflow": (
        lambda m, d: m.cast(m.constant([0, 1, 0]), d),
        lambda m, x: m.cast(x, "float32").numpy().tolist(),
        lambda m: m.experimental.dlpack.from_dlpack(Ours().__dlpack__()),
    ),
}
os.environ["JAX_ENABLE_X64"] = "1"
before = bytes_now()
assert before[1] == 0
for name, (make, read, take_ours) in PEERS.items():
    try:
        module = importlib.import_module(name)
    except ImportError:
        continue
    missing = set()
    for number, dtype in enumerate(DTYPES):
        here = ebb.make(number).decode()
        try:
            theirs = take_ours(module)
        except Exception as error:
            missing.add(f"no {dtype} from ebb ({str(error).splitlines()[0]})")
            take(Ours.given)
        else:
            assert here == told(address(theirs), read(module, theirs)), (name, dtype)
            ebb.update()
            ebb.drop()
            assert bytes_now()[0] > before[0]
            assert read(module, theirs) == [1, 1, 1], (name, dtype)
            theirs = None
        ebb.drop()
        assert bytes_now() == before, (name, dtype)
        for options in {}, {"max_version": (1, 3)}:
            try:
                theirs = make(module, dtype)
                wanted = told(address(theirs), [0, 1, 0])
                capsule = theirs.__dlpack__(**options)
            except Exception as error:
                missing.add(f"no {dtype} to ebb ({str(error).splitlines()[0]})")
                continue
            assert take(capsule) == wanted, (name, dtype)
            assert bytes_now()[1] > 0
            ebb.update()
            assert read(module, theirs) == [1, 1, 1], (name, dtype)
            theirs = capsule = None
            gc.collect()
            assert ebb.values().decode().endswith(" 1.000000 1.000000 1.000000"), (name, dtype)
            ebb.drop()
            assert bytes_now() == before, (name, dtype)
    if name == "numpy":
        theirs = module.zeros((2, 3), "f4")
        assert "not contiguous and row-major" in take(theirs.T.__dlpack__())
        theirs.flags.writeable = False
        assert take(theirs.__dlpack__(max_version=(1, 3))).startswith(str(theirs.ctypes.data))
        assert "made read-only" in ebb.update().decode()
        ebb.drop()
        assert bytes_now() == before
    version = importlib.import_module(name.split(".")[0]).__version__
    print(name.split(".")[0], version + ":", "; ".join(sorted(missing)) or "all dtypes are exchanged")
