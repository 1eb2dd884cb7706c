"""Golden values of the update rules: where PyTorch's optimizers take two parameters in 20 steps.

    python make_optimizers.py        (needs torch and numpy; made with PyTorch 2.15)

Gradients are drawn, not computed, so that nothing but the update rules is compared. In each file,
optimizers_f32.safetensors and optimizers_f64.safetensors:
  start.w [5, 3], start.b [3]       the parameters before the first step
  gradient.w [20, 5, 3], gradient.b [20, 3]
  CASE.w [20, 5, 3], CASE.b [20, 3] the parameters after each step
"""

import math
import os

import numpy as np
import torch

from safetensors_writer import write

STEPS = 20
HERE = os.path.dirname(os.path.abspath(__file__))


def cosine(peak, warm_up, steps, end):
    """The learning rate of step n, from 1, as ebb::optim::cosine states it."""

    def rate(n):
        if n <= warm_up:
            return peak * n / warm_up
        done = min(1.0, (n - warm_up) / (steps - warm_up))
        return end + (peak - end) * (1 + math.cos(math.pi * done)) / 2

    return rate


def constant(value):
    return lambda n: value


CASES = {
    "sgd": (constant(0.1), torch.optim.SGD, {}),
    "sgd_weight_decay": (constant(0.1), torch.optim.SGD, {"weight_decay": 0.05}),
    "sgd_momentum": (constant(0.1), torch.optim.SGD, {"momentum": 0.9}),
    "sgd_nesterov": (
        constant(0.1),
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    ),
    "adam": (constant(0.01), torch.optim.Adam, {}),
    "adam_options": (
        constant(0.01),
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.05},
    ),
    "adamw": (constant(0.01), torch.optim.AdamW, {"weight_decay": 0.1}),
    "adam_cosine": (cosine(0.05, 4, 16, 0.001), torch.optim.Adam, {}),
}

for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    random = np.random.default_rng(20240607)
    start = {"w": random.normal(size=(5, 3)), "b": random.normal(size=3)}
    # Of scales that differ, some of them zero: what the moments are for.
    scale = {"w": 10.0 ** random.uniform(-4, 1, size=(5, 3)), "b": np.array([1.0, 0.0, 1e-3])}
    gradient = {k: random.normal(size=(STEPS, *v.shape)) * scale[k] for k, v in start.items()}

    arrays = {f"start.{k}": torch.tensor(v, dtype=dtype).numpy() for k, v in start.items()}
    arrays |= {f"gradient.{k}": torch.tensor(v, dtype=dtype).numpy() for k, v in gradient.items()}
    for case, (rate, kind, options) in CASES.items():
        parameters = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in start.items()}
        optimizer = kind(parameters.values(), lr=rate(1), **options)
        after = {k: [] for k in start}
        for step in range(STEPS):
            for group in optimizer.param_groups:
                group["lr"] = rate(step + 1)
            for k, p in parameters.items():
                p.grad = torch.tensor(gradient[k][step], dtype=dtype)
            optimizer.step()
            for k, p in parameters.items():
                after[k].append(p.detach().numpy().copy())
        arrays |= {f"{case}.{k}": np.stack(v) for k, v in after.items()}
    write(os.path.join(HERE, f"optimizers_{name}.safetensors"), arrays)
