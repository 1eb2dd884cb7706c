"""The models that are measured: the weights and batches that all workers start from, under ebb's
names and in its layouts. A file of them says all that a worker needs to know of a model's sizes."""

import math
from dataclasses import dataclass

import torch

from steps import tensor_file

BATCHES = 8


def uniform(random, shape, bound):
    return (torch.rand(shape, generator=random) * 2 - 1) * bound


@dataclass(frozen=True)
class Mlp:
    kind = "mlp"
    sizes: tuple
    batch: int

    @property
    def title(self):
        return f"MLP {'-'.join(map(str, self.sizes))}, batch {self.batch}"

    def tensors(self, random):
        shape = (BATCHES, self.batch)
        tensors = {
            "x": torch.randn((*shape, self.sizes[0]), generator=random),
            "y": torch.randint(0, self.sizes[-1], shape, generator=random),
        }
        for i, (n_in, n_out) in enumerate(zip(self.sizes, self.sizes[1:])):
            bound = math.sqrt(6 / (n_in + n_out))
            tensors[f"{i}.weight"] = uniform(random, (n_in, n_out), bound)
            tensors[f"{i}.bias"] = uniform(random, (n_out,), 0.1)
        return tensors


@dataclass(frozen=True)
class Lstm:
    kind = "lstm"
    features: int
    hidden: int
    layers: int
    time: int
    batch: int

    @property
    def title(self):
        layers = f"{self.layers}x" if self.layers > 1 else ""
        return f"LSTM {self.features}-{layers}{self.hidden}, {self.time} steps, batch {self.batch}"

    def tensors(self, random):
        x = torch.randn((BATCHES, self.batch, self.time, self.features), generator=random)
        tensors = {"x": x, "y": x[:, :, -8:].mean(dim=(2, 3))[..., None] * 10}
        bound = self.hidden**-0.5
        gates = 4 * self.hidden
        for i in range(self.layers):
            n_in = self.features if i == 0 else self.hidden
            tensors[f"lstm.{i}.input"] = uniform(random, (n_in, gates), bound)
            tensors[f"lstm.{i}.recurrent"] = uniform(random, (self.hidden, gates), bound)
            tensors[f"lstm.{i}.bias"] = uniform(random, (gates,), bound)
        tensors["head.weight"] = uniform(random, (self.hidden, 1), bound)
        tensors["head.bias"] = uniform(random, (1,), bound)
        return tensors


MODELS = {
    "mlp": Mlp(sizes=(784, 512, 512, 10), batch=128),
    "mlp-large": Mlp(sizes=(784, 4096, 4096, 10), batch=4096),
    "lstm": Lstm(features=64, hidden=256, layers=1, time=64, batch=32),
    "lstm-large": Lstm(features=64, hidden=1024, layers=2, time=128, batch=128),
    # Tiny models for a trial of the programs.
    "mlp-tiny": Mlp(sizes=(16, 32, 10), batch=8),
    "lstm-tiny": Lstm(features=4, hidden=8, layers=2, time=6, batch=4),
}


def write(model, path, dtype=torch.float32):
    """Returns how many parameters there are, and the bytes of one batch."""
    tensors = MODELS[model].tensors(torch.Generator().manual_seed(7))
    tensors = {n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()}
    tensor_file.write(path, tensors)
    batch = (tensors["x"].nbytes + tensors["y"].nbytes) // BATCHES
    parameters = sum(t.numel() for name, t in tensors.items() if name not in ("x", "y"))
    return parameters, batch
