"""What the scripts of docs/coming-from.md share: each of its rows is a function that is called once.

A row NAME is stored as "NAME/x0", "NAME/x1", .. (what the function was given), "NAME/y0", .. (what
it gave), and "NAME/g0", .. (the gradients with respect to the floating inputs, where it has them,
of the sum of cos(i) y[i] over all floating outputs y and their elements i, counted from 0 in each).
"""

import numpy as np

from safetensors_writer import write


class Rows:
    def __init__(self):
        self.arrays = {}

    def add(self, name, inputs, outputs, gradients=()):
        assert f"{name}/y0" not in self.arrays, f"{name} is there already"
        assert len(outputs), f"{name} gives nothing"
        for letter, values in (("x", inputs), ("y", outputs), ("g", gradients)):
            for number, value in enumerate(values):
                if value is not None:
                    self.arrays[f"{name}/{letter}{number}"] = np.asarray(value, order="C")

    def write(self, path):
        write(path, self.arrays)


def weights(shape):
    """The factors of the elements of an output."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def require_equal(name, a, b):
    """Functions that share a row agree."""
    assert len(a) == len(b), name
    for one, other in zip(a, b):
        kinds = [f"{array.dtype}{array.shape}" for array in (one, other)]
        assert kinds[0] == kinds[1], f"{name}: {kinds}"
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)
