"""What the scripts of docs/coming-from.md share: each of its rows is a function that is called once.
Where a row's name is code, that is what is run.

A row NAME is stored as "NAME/x0", "NAME/x1", .. (what the function was given), "NAME/y0", .. (what
it gave), and "NAME/g0", .. (the gradients with respect to the floating inputs, where it has them,
of the sum of cos(i) y[i] over all floating outputs y and their elements i, counted from 0 in each).
"""

import ast

import numpy as np

from safetensors_writer import write


def calls_of(name, libraries):
    """The calls that a row's name lists, each as (expression, function): a function of the variables of
    the name, in the order in which they first occur."""
    listed = ast.parse(name, mode="eval").body
    found = [n for n in ast.walk(listed) if isinstance(n, ast.Name) and n.id not in libraries]
    found.sort(key=lambda n: n.col_offset)
    variables = ", ".join(dict.fromkeys(n.id for n in found))
    texts = [ast.unparse(e) for e in (listed.elts if isinstance(listed, ast.Tuple) else [listed])]
    return [(text, eval(f"lambda {variables}: {text}", libraries)) for text in texts]


def all_of(functions):
    """One function that gives what all of them do; of one alone, its own value."""
    return functions[0] if len(functions) == 1 else lambda *x: tuple(f(*x) for f in functions)


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


def equal(a, b):
    """Whether two lists of arrays are: functions that share a row agree."""
    return len(a) == len(b) and all(
        one.dtype == other.dtype and one.shape == other.shape
        and np.allclose(one, other, rtol=1e-12, atol=1e-12, equal_nan=True)
        for one, other in zip(a, b))
