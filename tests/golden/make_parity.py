"""What NumPy and PyTorch compute in the rows of docs/coming-from.md.

    python make_parity.py        (needs torch and numpy; made with PyTorch 2.15 and NumPy 2.4)

Writes parity_torch.safetensors; how, is said in parity_rows.py. A row's name is the first cell of
its line in the page. Where it names functions of both libraries, the script fails unless they agree.
"""

import os
import re
import warnings

import numpy as np
import torch
from torch.nn import functional as F

import make_parity_networks
from parity_rows import Rows, all_of, calls_of, equal, weights

HERE = os.path.dirname(os.path.abspath(__file__))
warnings.simplefilter("ignore")  # of divisions by 0, and of means of nothing
LIBRARIES = {"torch": torch, "F": F, "np": np}
rows = Rows()
random = np.random.default_rng(5)

A = random.standard_normal((2, 3))
B = random.standard_normal((2, 3))
C = random.standard_normal((3, 4))
X = random.standard_normal((2, 3, 4))
POSITIVE = random.random((2, 3)) + 0.5
ROW = random.standard_normal(3)
COLUMN = random.standard_normal((2, 1))
I32 = np.array([[7, -7, 3], [-8, 2**31 - 1, 0]], np.int32)
I64 = np.array([[7, -7, 3], [-8, 5, 0]], np.int64)
BY = np.array([[2, 2, -2], [3, 3, 5]], np.int64)
BYTES = np.array([250, 3, 128], np.uint8)
SPECIAL = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6, -0.0, np.inf, np.nan])
TIES = np.array([[3.0, 1.0, 3.0, 2.0], [2.0, 2.0, 5.0, 2.0]])
WITH_NAN = np.array([[1.0, np.nan, 3.0], [4.0, 2.0, 0.5]])
FLAGS = np.array([[True, False, True], [False, False, False]])
NOTHING = np.zeros((2, 0))


def as_arrays(outputs):
    if isinstance(outputs, (tuple, list)):
        return [as_arrays(o)[0] for o in outputs]
    return [outputs.detach().numpy() if isinstance(outputs, torch.Tensor) else np.asarray(outputs)]


def torch_row(name, *given, also=(), gradient=True):
    """Runs the calls in the row's name, or the functions that are given before the inputs and give the
    same. NumPy's calls in the name, and `also`, a function of arrays, give all outputs or one of them."""
    functions = [f for f in given if callable(f)]
    inputs = [x for x in given if not callable(x)]
    of_numpy = [also] if also else []
    if not functions:
        calls = calls_of(name, LIBRARIES)
        functions = [all_of([f for text, f in calls if "np." not in text])]
        of_numpy += [f for text, f in calls if "np." in text]
        if not re.search(r"[\w\])]\(|\.[a-z]", name):  # operators and slices, which arrays have too
            of_numpy += functions
    tensors = [torch.tensor(x) for x in inputs]
    floating = [t for t in tensors if t.is_floating_point()] if gradient else []
    for t in floating:
        t.requires_grad_(True)
    outputs = functions[0](*tensors)
    listed = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    arrays = as_arrays(listed)
    for other in functions[1:]:
        assert equal(as_arrays(other(*tensors)), arrays), name
    for other in of_numpy:
        found = as_arrays(other(*inputs))
        assert equal(found, arrays) or any(equal(found, [array]) for array in arrays), name
    smooth = [y for y in listed if y.is_floating_point() and y.requires_grad]
    gradients = []
    if floating and smooth:
        total = sum((y * torch.tensor(weights(y.shape), dtype=y.dtype)).sum() for y in smooth)
        found = iter(torch.autograd.grad(total, floating, allow_unused=True))
        gradients = [next(found) if t.requires_grad else None for t in tensors]
    rows.add(name, inputs, arrays, [None if g is None else g.numpy() for g in gradients])


def numpy_row(name, *given):
    """Runs the function that is given before the inputs, or the calls in the row's name."""
    if not (given and callable(given[0])):
        given = [all_of([f for _, f in calls_of(name, LIBRARIES)]), *given]
    rows.add(name, given[1:], as_arrays(given[0](*given[1:])))


def make_creation():
    torch_row("torch.tensor([[1., 2.]])")
    numpy_row("np.array([[1., 2.]])")
    torch_row("torch.zeros(2, 3), torch.ones(2, 3)")
    torch_row("torch.full((2, 3), 0.1)")
    torch_row("torch.zeros_like(x), torch.ones_like(x), np.zeros_like(x)", I32)
    torch_row("torch.full_like(x, 3), np.full_like(x, 3)", I32)
    torch_row("torch.arange(2, 9, 3), np.arange(2, 9, 3)")
    numpy_row("np.arange(0, 1, 0.3)")
    torch_row("torch.arange(0, 1, 0.3)")
    numpy_row("np.linspace(1, 2, 5)")
    torch_row("torch.linspace(1, 2, 5)")
    torch_row("torch.eye(2, 3)")
    numpy_row("np.eye(2, 3, k=1)")
    torch_row("torch.tril(x, -1), torch.triu(x, 1), np.tril(x, -1)", X)
    numbers = np.array([2.7, -2.7, 0.5, -0.5, 100.9])
    torch_row("x.to(torch.int32), x.astype(np.int32)", numbers)
    numpy_row("x.astype(np.int32) of NaN and beyond the range", lambda x: x.astype(np.int32),
              np.array([np.nan, np.inf, -np.inf, 3e9, -3e9]))
    torch_row("x.to(torch.bool)", np.array([0.0, -0.0, 0.3, np.nan]))
    torch_row("x.to(torch.bfloat16)", lambda x: x.to(torch.bfloat16).to(torch.float32),
              np.array([1 + 2**-8, 1 + 3 * 2**-8, 0.1, 3e38, np.inf], np.float32), gradient=False)
    torch_row("x.half(), x.astype(np.float16)",
              np.array([1 + 2**-11, 1 + 3 * 2**-11, 0.1, 65504, 65520], np.float32),
              gradient=False)
    torch_row("x.clone()", A)


def make_shape():
    torch_row("x[1], x[-1]", X)
    torch_row("x[1:3], x[:-1]", C)
    torch_row("x[:, 1:], x[..., ::2]", X)
    numpy_row("x[::-1]", C)
    torch_row("x[..., None], x.unsqueeze(-1), np.expand_dims(x, -1)",
              lambda x: x[..., None], lambda x: x.unsqueeze(-1), A,
              also=lambda x: np.expand_dims(x, -1))
    torch_row("x.squeeze(1), np.squeeze(x, 1)", COLUMN)
    torch_row("x.reshape(3, -1), x.view(3, -1)",
              lambda x: x.view(3, -1), lambda x: x.reshape(3, -1), X,
              also=lambda x: x.reshape(3, -1))
    torch_row("torch.flatten(x)", X)
    torch_row("nn.Flatten()", lambda x: torch.nn.Flatten()(x), X)
    torch_row("x.permute(2, 0, 1), np.transpose(x, (2, 0, 1))", X)
    torch_row("x.transpose(0, 1), np.swapaxes(x, 0, 1)", X)
    torch_row("x.mT", X)
    numpy_row("x.T, np.transpose(x)", X)
    torch_row("torch.cat([x, y], 1), np.concatenate([x, y], 1)", A, COLUMN)
    torch_row("torch.stack([x, y], -1), np.stack([x, y], -1)", A, B)
    torch_row("torch.split(x, [1, 3], -1)", X)
    torch_row("torch.split(x, 2, -1)", X)
    torch_row("torch.chunk(x, 2, -1), np.split(x, 2, -1)", X)
    torch_row("x.expand(2, -1), np.broadcast_to(x, (2, 3))", ROW)
    torch_row("torch.tile(x, (1, 2)), x.repeat(1, 2), np.tile(x, (1, 2))",
              lambda x: x.repeat(1, 2), lambda x: torch.tile(x, (1, 2)), A,
              also=lambda x: np.tile(x, (1, 2)))
    torch_row("torch.repeat_interleave(x, 2, 1), np.repeat(x, 2, 1)", A)
    numpy_row("np.repeat(x, 2)", A)
    torch_row("F.pad(x, (1, 2, 0, 3), value=v)", lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), A)
    numpy_row("np.pad(x, ((0, 3), (1, 2)))", A)
    torch_row("torch.flip(x, [0, 2]), np.flip(x, (0, 2))", X)
    numpy_row("np.flip(x)", X)
    torch_row("torch.roll(x, 1, 0), np.roll(x, 1, 0)", C)
    numpy_row("x.shape, x.ndim, x.size", lambda x: (np.array(x.shape), np.array(x.ndim), np.array(x.size)), X)


def make_indexing():
    indices = np.array([2, 0, 2])
    table = np.array([[2, 0], [1, 2]])
    torch_row("torch.index_select(x, 1, i), np.take(x, i, 1)", X, indices)
    torch_row("x[i]", C, table)
    numpy_row("np.take(x, i)", C, np.array([0, 5, 11]))
    torch_row("torch.gather(x, 1, i), np.take_along_axis(x, i, 1)", A, table)
    torch_row("x.index_add(0, i, v)", C, indices, random.standard_normal((3, 4)))
    torch_row("x.scatter_add(1, i, v)", A, np.array([[2, 2], [1, 0]]),
              random.standard_normal((2, 2)))
    torch_row("F.one_hot(i, 4)", indices)
    torch_row("F.embedding(i, w)", table, C)
    condition = np.array([[True], [False]])
    torch_row("torch.where(c, x, y), np.where(c, x, y)", condition, A, ROW)
    torch_row("torch.where(x > 0, torch.sqrt(x), 0)",
              lambda x: torch.where(x > 0, torch.sqrt(x), torch.zeros((), dtype=torch.float64)),
              np.array([4.0, 0.0, -1.0]))
    torch_row("x.masked_fill(m, v)", lambda x, m: x.masked_fill(m, 9.0), A, FLAGS)
    torch_row("x.select(1, 2)", X)
    numpy_row("np.searchsorted(a, v)", np.array([1.0, 2.0, 2.0, 4.0]),
              np.array([0.5, 2.0, 3.0, 9.0]))


def make_arithmetic():
    torch_row("x + y, x - y, x * y, x / y", A, B)
    torch_row("[2, 1] + [3]", lambda x, y: x + y, COLUMN, ROW, also=lambda x, y: x + y)
    torch_row("x + 1, 2 - x, 3 / x", A)
    numpy_row("1 / 0, -1 / 0, 0 / 0 of floats",
              lambda x: x / np.zeros(3), np.array([1.0, -1.0, 0.0]))
    torch_row("i32 + 1, i32 * 2 beyond the range", lambda x: (x + 1, x * 2), I32,
              also=lambda x: (x + 1, x * 2))
    torch_row("u8 + u8 beyond the range", lambda x: (x + x, x - 4), BYTES,
              also=lambda x: (x + x, x - np.uint8(4)))
    torch_row("i / j of integers", lambda i, j: i / j, I64, BY)
    numpy_row("np.divide(i, j) of integers", np.divide, I64, BY)
    torch_row("i // j, i % j of integers", lambda i, j: (i // j, i % j), I64, BY,
              also=lambda i, j: (i // j, i % j))
    numpy_row("i // 0, i % 0 of integers", lambda i: (i // np.int64(0), i % np.int64(0)), I64)
    floats = np.array([7.0, -7.0, 7.0, -7.0, 5.5, 0.0]), np.array([2.0, 2.0, -2.0, -2.0, 0.7, 3.0])
    torch_row("torch.remainder(x, y), np.mod(x, y)", *floats)
    torch_row("torch.floor_divide(x, y), np.floor_divide(x, y)", *floats, gradient=False)
    torch_row("torch.fmod(x, y), np.fmod(x, y)", *floats, gradient=False)
    numpy_row("x // 0, x % 0 of floats",
              lambda x: (x // np.zeros(3), x % np.zeros(3)), np.array([1.0, -1.0, 0.0]))
    torch_row("-x, torch.square(x), torch.sqrt(x), np.sqrt(x)", POSITIVE)
    for name in ("exp", "expm1", "exp2", "sin", "cos", "tanh", "sinh", "cosh"):
        torch_row(f"torch.{name}(x), np.{name}(x)", A)
    for name in ("log", "log1p", "log2", "log10"):
        torch_row(f"torch.{name}(x), np.{name}(x)", POSITIVE)
    torch_row("torch.tan(x), np.tan(x)", A)
    within_one = np.array([[-0.9, 0.0, 0.3], [0.75, -0.2, 0.99]])
    for name, also, values in (("asin", "arcsin", within_one), ("acos", "arccos", within_one),
                               ("atan", "arctan", A), ("asinh", "arcsinh", A),
                               ("acosh", "arccosh", POSITIVE + 1), ("atanh", "arctanh", within_one)):
        torch_row(f"torch.{name}(x), np.{also}(x)", values)
    torch_row("torch.atan2(y, x), np.arctan2(y, x)", A, B)
    torch_row("torch.rsqrt(x), torch.reciprocal(x)", POSITIVE)
    torch_row("torch.erf(x)", A)
    numpy_row("np.sqrt, np.log, np.exp at the ends",
              lambda x: (np.sqrt(x), np.log(x), np.exp(x)), SPECIAL)
    torch_row("torch.pow(x, y), np.power(x, y)", POSITIVE, B)
    numpy_row("0 ** 0, nan ** 0, (-8) ** (1 / 3)", lambda x, y: x**y,
              np.array([0.0, np.nan, -8.0, -2.0, np.inf]), np.array([0.0, 0.0, 1 / 3, 3.0, -1.0]))
    torch_row("torch.abs(x)", np.array([-1.5, 0.0, 2.0]))
    torch_row("torch.sign(x), np.sign(x)", SPECIAL[:6])
    numpy_row("np.sign(nan)", SPECIAL)
    torch_row("torch.sign(nan)", SPECIAL, gradient=False)  # 0
    torch_row("torch.floor(x), torch.ceil(x), torch.trunc(x), np.trunc(x)", HALVES)
    torch_row("torch.round(x), np.round(x)", HALVES)
    torch_row("torch.maximum(x, y), torch.minimum(x, y), np.maximum(x, y)",
              np.array([1.0, 2.0, 3.0, np.nan]), np.array([2.0, 2.0, 1.0, 1.0]))
    numpy_row("np.fmax(x, y)", np.array([1.0, np.nan, np.nan]), np.array([2.0, 1.0, np.nan]))
    torch_row("torch.clamp(x, -1, 1), np.clip(x, -1, 1)", np.array([-2.0, -0.9, 0.5, 3.0, np.nan]))

    def at_bounds():
        x = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(torch.clamp(x, -1, 1).sum(), x)[0]

    torch_row("the gradient of torch.clamp at its bounds", at_bounds)
    torch_row("x == y, x != y, x < y, x <= y, x > y, x >= y",
              np.array([1.0, 2.0, np.nan, 0.0, np.inf]),
              np.array([1.0, 3.0, np.nan, -0.0, np.inf]))
    numpy_row("np.float32(0.1) == 0.1", lambda x: x == 0.1, np.array([0.1], np.float32))
    torch_row("a & b, a | b, a ^ b, ~a of bool", lambda a, b: (a & b, a | b, a ^ b, ~a), FLAGS,
              ~FLAGS[:1], also=lambda a, b: (a & b, a | b, a ^ b, ~a))
    torch_row("torch.isnan(x), torch.isinf(x), torch.isfinite(x), np.isnan(x)", SPECIAL)
    numpy_row("np.isclose(x, y)", np.array([1.0, 1.0, 100.0, np.nan, np.inf]),
              np.array([1.000001, 1.1, 100.0005, np.nan, np.inf]))
    torch_row("torch.lerp(x, y, w), torch.addcmul(x, y, z)",
              lambda x, y, z: (torch.lerp(x, y, 0.3), torch.addcmul(x, y, z)), A, B, POSITIVE)


def make_reductions():
    torch_row("x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), np.sum(x)", X)
    torch_row("x.sum() of f16", torch.sum, np.array([2048, 1, 1, 1, 1], np.float16), gradient=False)
    torch_row("x.mean(), x.mean(-1), np.mean(x)", X)
    torch_row("x.sum() of i32, u8 and bool",
              lambda i, u, b: (i.sum(), u.sum(), b.sum()), I32, BYTES, FLAGS)
    numpy_row("np.sum of i32 and bool", lambda i, b: (i.sum(), b.sum()), I32, FLAGS)
    torch_row("the sum and mean of nothing", lambda x: (x.sum(1), x.mean(1)), NOTHING,
              gradient=False, also=lambda x: (x.sum(1), x.mean(1)))
    torch_row("torch.amax(x, 1), torch.amin(x, 1), np.max(x, 1)", TIES)
    single = np.array([[3.0, 1.0, 4.0], [2.0, 7.0, 5.0]])
    torch_row("torch.max(x, 1)", single)

    def at_ties():
        x = torch.tensor(TIES[0], requires_grad=True)
        gradient = torch.autograd.grad(torch.max(x, 0)[0], x)[0]
        return gradient.max(), gradient.sum()

    torch_row("the gradient of torch.max(x, 0) at ties", at_ties)
    torch_row("the max of NaN", lambda x: (torch.amax(x, 1), torch.amin(x, 1)), WITH_NAN,
              gradient=False, also=lambda x: (x.max(1), x.min(1)))
    torch_row("x.max(), x.min() of integers", lambda x: (x.max(), x.min()), I64,
              also=lambda x: (x.max(), x.min()))
    numpy_row("np.argmax(x, 1), np.argmin(x, 1) with ties",
              lambda x: (np.argmax(x, 1), np.argmin(x, 1)), TIES)
    torch_row("torch.argmax(x), torch.argmin(x, 1, keepdim=True), np.argmax(x)", single)
    torch_row("the argmax of NaN", lambda x: (torch.argmax(x, 1), torch.argmin(x, 1)), WITH_NAN,
              also=lambda x: (np.argmax(x, 1), np.argmin(x, 1)))
    torch_row("torch.any(b, 1), torch.all(b, 1), np.any(b, 1)", FLAGS)
    numpy_row("np.any([]), np.all([])", lambda b: (np.any(b), np.all(b)), np.zeros(0, bool))
    torch_row("np.any(x) of numbers", lambda x: torch.any(x, 1),
              np.array([[0.0, 0.0, -0.0], [0.0, np.nan, 0.0]]), also=lambda x: np.any(x, 1))
    torch_row("torch.var(x, 1), torch.std(x, 1)", C)
    torch_row("torch.var(x, 1, correction=0), np.var(x, 1), np.std(x, 1)",
              lambda x: (torch.var(x, 1, correction=0), torch.std(x, 1, correction=0)), C,
              also=lambda x: (np.var(x, 1), np.std(x, 1)))
    torch_row("the variance of one element",
              lambda x: (torch.var(x, correction=0), torch.var(x)), np.array([3.0]), gradient=False)
    torch_row("torch.linalg.vector_norm(x, dim=1), np.linalg.norm(x, axis=1)", A)
    torch_row("torch.linalg.vector_norm(x, 1), np.linalg.norm(x, np.inf)",
              lambda x: (torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, np.inf)), ROW,
              also=lambda x: (np.linalg.norm(x, 1), np.linalg.norm(x, np.inf)))
    torch_row("the norm's gradient at 0", lambda x: torch.linalg.vector_norm(x), np.zeros(3))
    torch_row("torch.logsumexp(x, 1)", A)
    torch_row("logsumexp of nothing and of -inf",
              lambda x, y: (torch.logsumexp(x, 1), torch.logsumexp(y, 0)), NOTHING,
              np.full(3, -np.inf), gradient=False)
    torch_row("torch.cumsum(x, 1), np.cumsum(x, 1)", A)
    torch_row("torch.cumprod(x, 1), np.cumprod(x, 1)", A)
    torch_row("torch.cumprod(x, 1) of zeros", lambda x: torch.cumprod(x, 1),
              np.array([[2.0, 0, -3, 0, 5], [0, 2, 3, 4, 5], [0, 0, 0, 1, 2], [1, 2, 3, 4, 0]]))
    numpy_row("np.cumsum(x)", A)
    torch_row("torch.cumsum(x, 0) of i32", lambda x: torch.cumsum(x, 0), I32)
    torch_row("torch.prod(x, 1), np.prod(x, 1)", np.array([[2.0, -0.5, 3.0], [1.5, 0.0, -2.0]]))
    torch_row("torch.count_nonzero(x), np.count_nonzero(x)", I64)
    numpy_row("np.diff(x)", A)
    torch_row("np.nansum(x), torch.nansum(x)", WITH_NAN, gradient=False)


def make_order():
    unordered = np.array([[3.0, -1.0, 2.0, 0.5], [2.0, 7.0, -4.0, 1.0]])
    nans = np.array([2.0, np.nan, -1.0, np.inf, 1.0])
    torch_row("torch.sort(x), np.sort(x)", lambda x: torch.sort(x)[0], unordered, also=np.sort)
    torch_row("torch.sort(x, 0, descending=True)", unordered)
    torch_row("torch.sort(x, stable=True) with ties", lambda x: tuple(torch.sort(x, stable=True)),
              TIES)
    torch_row("torch.sort(x, stable=True, descending=True) with ties",
              lambda x: tuple(torch.sort(x, stable=True, descending=True)), TIES)
    torch_row("the order of NaN, np.sort([nan, ..])",
              lambda x: (torch.sort(x)[0], torch.sort(x, descending=True)[0]), nans, gradient=False,
              also=lambda x: (np.sort(x), np.sort(x)[::-1]))
    torch_row("torch.argsort(x, 0), np.argsort(x, 0)", unordered)
    torch_row("torch.topk(x, 2)", unordered)
    torch_row("torch.topk(x, 1, 0, largest=False)", unordered)
    torch_row("torch.median(x, 1)", lambda x: torch.median(x, 1)[0], unordered)
    torch_row("torch.kthvalue(x, 2)", lambda x: torch.kthvalue(x, 2)[0], unordered)
    numpy_row("np.argsort(np.argsort(x))", unordered)


def make_linear_algebra():
    vector = random.standard_normal(4)
    torch_row("x @ y, torch.mm(x, y), np.matmul(x, y)", lambda x, y: x @ y, torch.mm, A, C,
              also=lambda x, y: np.matmul(x, y))
    torch_row("x @ y with batches, torch.bmm(x, y)", lambda x, y: x @ y, torch.bmm, X,
              random.standard_normal((2, 4, 2)), also=lambda x, y: x @ y)
    torch_row("x @ y where leading axes broadcast", lambda x, y: x @ y, X,
              random.standard_normal((5, 1, 4, 2)), also=lambda x, y: x @ y)
    torch_row("torch.mv(x, v), x @ v, v @ x",
              lambda x, v, u: (x @ v, u @ x), lambda x, v, u: (torch.mv(x, v), u @ x), C, vector, ROW,
              also=lambda x, v, u: (x @ v, u @ x))
    torch_row("torch.dot(v, w), np.dot(v, w)", vector, random.standard_normal(4))
    numpy_row("np.dot(x, y) of more axes", lambda x, y: np.dot(x, y), X,
              random.standard_normal((2, 4, 2)))
    torch_row("torch.outer(v, w), np.outer(v, w)", vector, ROW)
    torch_row("torch.einsum('bij,bkj->bik', x, y)", X, random.standard_normal((2, 2, 4)))
    torch_row("torch.addmm(b, x, y)", random.standard_normal(4), A, C)
    torch_row("F.linear(x, w, b)", X, random.standard_normal((2, 4)), random.standard_normal(2))
    torch_row("torch.trace(x), np.trace(x)", random.standard_normal((3, 3)))
    torch_row("torch.diagonal(x), torch.diag(v)", random.standard_normal((3, 3)), ROW)
    torch_row("the product over no elements", lambda x, y: x @ y, np.zeros((2, 0)),
              np.zeros((0, 3)), also=lambda x, y: x @ y)
    torch_row("F.cosine_similarity(x, y, dim=1)", A, B)
    torch_row("F.normalize(x, dim=1)", A)


make_creation()
make_shape()
make_indexing()
make_arithmetic()
make_reductions()
make_order()
make_linear_algebra()
make_parity_networks.make(rows, torch_row)
rows.write(os.path.join(HERE, "parity_torch.safetensors"))
