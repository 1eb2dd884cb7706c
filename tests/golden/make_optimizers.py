"""Golden values of the update rules: where PyTorch's optimizers take two parameters in 20 steps.

    python make_optimizers.py        (needs torch and numpy; made with PyTorch 2.15)

Gradients are drawn, not computed, so that nothing but the update rules is compared. In each file,
optimizers_f32.safetensors and optimizers_f64.safetensors:
  start.w [5, 3], start.b [3]       the parameters before the first step
  gradient.w [20, 5, 3], gradient.b [20, 3]
  CASE.w [20, 5, 3], CASE.b [20, 3] the parameters after each step
  ema.w, ema.b, ema_corrected.w, ema_corrected.b   averages of the parameters of "adam", decay 0.9
"""

import math
import os

import numpy as np
import torch
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop
from torch.optim.lr_scheduler import ExponentialLR, PolynomialLR, StepLR

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


def scheduled(value, kind, shift=0, **options):
    """The learning rate of step n by a scheduler of PyTorch's, which counts from 0 (or `shift`)."""
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=value)
    scheduler = kind(optimizer, **options)
    rates = []
    for _ in range(STEPS + shift):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return lambda n: rates[n - 1 + shift]


def by_value(limit):
    return lambda gradients: {k: np.clip(g, -limit, limit) for k, g in gradients.items()}


def by_norm(limit):
    return lambda gradients: {k: g * min(1, limit / np.linalg.norm(g)) for k, g in gradients.items()}


def by_global_norm(limit):
    def clip(gradients):
        norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients.values()))
        return {k: g * np.asarray(min(1, limit / norm), g.dtype) for k, g in gradients.items()}

    return clip


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., NeurIPS 2023, which PyTorch does not have, in plain NumPy."""

    def __init__(self, parameters, lr, beta1=0.9, beta2=0.99, weight_decay=0.0):
        super().__init__(parameters, {"lr": lr})
        self.momenta = None
        self.beta1, self.beta2, self.weight_decay = beta1, beta2, weight_decay

    @torch.no_grad()
    def step(self):
        (group,) = self.param_groups
        if self.momenta is None:
            self.momenta = [np.zeros_like(p.numpy()) for p in group["params"]]
        for k, p in enumerate(group["params"]):
            x, g, m = p.numpy(), p.grad.numpy(), self.momenta[k]
            direction = np.sign(self.beta1 * m + (1 - self.beta1) * g)
            p.copy_(torch.from_numpy(x - group["lr"] * (direction + self.weight_decay * x)))
            self.momenta[k] = self.beta2 * m + (1 - self.beta2) * g


NESTEROV = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05}
CENTERED = {"alpha": 0.9, "eps": 1e-3, "centered": True}
CASES = {
    "sgd": (constant(0.1), SGD, {}),
    "sgd_weight_decay": (constant(0.1), SGD, {"weight_decay": 0.05}),
    "sgd_momentum": (constant(0.1), SGD, {"momentum": 0.9}),
    "sgd_nesterov": (constant(0.1), SGD, NESTEROV),
    "adam": (constant(0.01), Adam, {}),
    "adam_options": (constant(0.01), Adam, {"betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.05}),
    "adamw": (constant(0.01), AdamW, {"weight_decay": 0.1}),
    "adam_cosine": (cosine(0.05, 4, 16, 0.001), Adam, {}),
    "rmsprop": (constant(0.01), RMSprop, {}),
    "rmsprop_momentum": (
        constant(0.01), RMSprop, {"alpha": 0.9, "eps": 1e-4, "momentum": 0.8, "weight_decay": 0.05}),
    "rmsprop_centered": (constant(0.01), RMSprop, CENTERED),
    "rmsprop_centered_momentum": (constant(0.01), RMSprop, CENTERED | {"momentum": 0.8}),
    "adagrad": (constant(0.1), Adagrad, {}),
    "adagrad_options": (
        constant(0.1), Adagrad,
        {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-6, "weight_decay": 0.05}),
    "sgd_step_decay": (scheduled(0.1, StepLR, step_size=6, gamma=0.5), SGD, {}),
    "sgd_exponential_decay": (scheduled(0.1, ExponentialLR, gamma=0.9), SGD, {}),
    "sgd_polynomial_decay": (scheduled(0.1, PolynomialLR, 1, total_iters=15, power=2.0), SGD, {}),
    "sgd_clip_value": (constant(0.1), SGD, {"clip": by_value(0.5)}),
    "adam_clip_norm": (constant(0.01), Adam, {"clip": by_norm(0.5)}),
    "adam_clip_global_norm": (constant(0.01), Adam, {"clip": by_global_norm(0.5)}),
    "lion": (constant(0.01), Lion, {}),
    "lion_options": (constant(0.01), Lion, {"beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1}),
}

for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    random = np.random.default_rng(20240607)
    start = {"w": random.normal(size=(5, 3)), "b": random.normal(size=3)}
    # The scales differ and some are zero, so that the moments matter.
    scale = {"w": 10.0 ** random.uniform(-4, 1, size=(5, 3)), "b": np.array([1.0, 0.0, 1e-3])}
    gradient = {k: random.normal(size=(STEPS, *v.shape)) * scale[k] for k, v in start.items()}

    arrays = {f"start.{k}": torch.tensor(v, dtype=dtype).numpy() for k, v in start.items()}
    arrays |= {f"gradient.{k}": torch.tensor(v, dtype=dtype).numpy() for k, v in gradient.items()}
    for case, (rate, kind, given) in CASES.items():
        clip = given.get("clip", lambda gradients: gradients)
        options = {k: v for k, v in given.items() if k != "clip"}
        parameters = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in start.items()}
        optimizer = kind(parameters.values(), lr=rate(1), **options)
        after = {k: [] for k in start}
        for step in range(STEPS):
            for group in optimizer.param_groups:
                group["lr"] = rate(step + 1)
            clipped = clip({k: arrays[f"gradient.{k}"][step] for k in parameters})
            for k, p in parameters.items():
                p.grad = torch.tensor(clipped[k], dtype=dtype)
            optimizer.step()
            for k, p in parameters.items():
                after[k].append(p.detach().numpy().copy())
        arrays |= {f"{case}.{k}": np.stack(v) for k, v in after.items()}

    average = torch.optim.swa_utils.get_ema_avg_fn(0.9)
    for k in start:
        values = torch.tensor(arrays[f"adam.{k}"])
        plain, corrected, moment = [], [], torch.zeros_like(values[0])
        for n, value in enumerate(values, 1):
            plain.append(average(plain[-1], value, n) if plain else value)  # as AveragedModel
            moment = 0.9 * moment + 0.1 * value
            corrected.append(moment / (1 - 0.9**n))
        arrays |= {f"ema.{k}": torch.stack(plain).numpy()}
        arrays |= {f"ema_corrected.{k}": torch.stack(corrected).numpy()}
    write(os.path.join(HERE, f"optimizers_{name}.safetensors"), arrays)
