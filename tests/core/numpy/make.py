"""Writes the .npy and .npz files of this folder with NumPy itself (pip install numpy)."""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
ramp = np.arange(24, dtype=np.float64).reshape(2, 3, 4)

np.savez(
    HERE / "stored.npz",
    f2=np.array([1.5, -0.25], np.float16),
    f4=np.array([[0.1, 2, 3], [4, 5, 6]], np.float32),
    f8=np.array([0.1, -2.5], np.float64),
    i4=np.array([-7, 7], np.int32),
    i8=np.array([1 << 40, -1], np.int64),
    u1=np.array([0, 128, 255], np.uint8),
    bool=np.array([True, False]),
    scalar=np.array(2.5, np.float32),
    empty=np.zeros((0, 4), np.float32),
    c_order=ramp,
    fortran=np.asfortranarray(ramp),
    **{"layer.0/größe": np.array([3], np.int32)},
)
np.savez_compressed(HERE / "compressed.npz", a=ramp)
np.save(HERE / "c_order.npy", ramp)
np.save(HERE / "fortran.npy", np.asfortranarray(ramp.astype(np.float32)))
np.save(HERE / "fortran_bytes.npy", np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)))
for version in [(2, 0), (3, 0)]:
    with open(HERE / f"version{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, ramp, version)
np.save(HERE / "big_endian.npy", ramp.astype(">f8"))
np.save(HERE / "complex.npy", ramp.astype(np.complex64))
np.save(HERE / "text.npy", np.array(["a", "bc"]))
np.save(HERE / "records.npy", np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]))
np.save(HERE / "objects.npy", np.array([None, 1], dtype=object))
