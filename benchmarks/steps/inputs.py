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


@dataclass(frozen=True)
class Gpt:
    """Of GPT-2's shape: its table is the head as well."""

    kind = "gpt"
    vocabulary: int
    features: int
    layers: int
    heads: int
    length: int
    batch: int

    @property
    def title(self):
        return (
            f"GPT {self.layers}x{self.features}, vocabulary {self.vocabulary}, "
            f"batch {self.batch} of {self.length}"
        )

    def tensors(self, random):
        shape = (BATCHES, self.batch, self.length + 1)
        tokens = torch.randint(0, self.vocabulary, shape, generator=random)
        features = self.features
        tensors = {
            "x": tokens[..., :-1],
            "y": tokens[..., 1:],
            "heads": torch.zeros(self.heads),
            "token.weight": torch.randn((self.vocabulary, features), generator=random) * 0.02,
            "position.weight": torch.randn((self.length, features), generator=random) * 0.02,
        }

        def norm(name):
            tensors[f"{name}.scale"] = torch.ones(features)
            tensors[f"{name}.shift"] = torch.zeros(features)

        def dense(name, n_in, n_out):
            tensors[f"{name}.weight"] = torch.randn((n_in, n_out), generator=random) * 0.02
            tensors[f"{name}.bias"] = uniform(random, (n_out,), 0.1)

        for i in range(self.layers):
            norm(f"block.{i}.norm_1")
            dense(f"block.{i}.attention.qkv", features, 3 * features)
            dense(f"block.{i}.attention.output", features, features)
            norm(f"block.{i}.norm_2")
            dense(f"block.{i}.fc", features, 4 * features)
            dense(f"block.{i}.proj", 4 * features, features)
        norm("norm")
        return tensors


@dataclass(frozen=True)
class ResNet:
    """Of ResNet-18's shape for small images: two blocks for each width, halved images between."""

    kind = "resnet"
    widths: tuple
    side: int
    batch: int

    @property
    def title(self):
        widths = "-".join(map(str, self.widths))
        return f"ResNet {widths}, batch {self.batch} of {self.side}x{self.side}"

    def tensors(self, random):
        x = torch.randn((BATCHES, self.batch, 3, self.side, self.side), generator=random)
        y = torch.randint(0, 10, (BATCHES, self.batch), generator=random)
        tensors = {"x": x, "y": y}

        def conv(name, n_in, n_out, kernel):
            shape = (n_out, n_in, kernel, kernel)
            bound = math.sqrt(6 / (n_in * kernel**2))
            tensors[f"{name}.conv.weight"] = uniform(random, shape, bound)
            tensors[f"{name}.norm.scale"] = torch.ones(n_out)
            tensors[f"{name}.norm.shift"] = torch.zeros(n_out)
            tensors[f"{name}.norm.running_mean"] = torch.zeros(n_out)
            tensors[f"{name}.norm.running_variance"] = torch.ones(n_out)

        n_in = self.widths[0]
        conv("stem", 3, n_in, 3)
        for i, n_out in enumerate(width for width in self.widths for _ in range(2)):
            conv(f"block.{i}.first", n_in, n_out, 3)
            conv(f"block.{i}.second", n_out, n_out, 3)
            if n_in != n_out:
                conv(f"block.{i}.shortcut", n_in, n_out, 1)
            n_in = n_out
        tensors["head.weight"] = uniform(random, (n_in, 10), n_in**-0.5)
        tensors["head.bias"] = uniform(random, (10,), 0.1)
        return tensors


MODELS = {
    "mlp": Mlp(sizes=(784, 512, 512, 10), batch=128),
    "mlp-large": Mlp(sizes=(784, 4096, 4096, 10), batch=4096),
    "lstm": Lstm(features=64, hidden=256, layers=1, time=64, batch=32),
    "lstm-large": Lstm(features=64, hidden=1024, layers=2, time=128, batch=128),
    "gpt": Gpt(vocabulary=8192, features=384, layers=6, heads=6, length=256, batch=4),
    "resnet": ResNet(widths=(32, 64, 128, 256), side=32, batch=16),
    # For a GPU.
    "lstm-128": Lstm(features=64, hidden=128, layers=1, time=64, batch=32),
    "gpt-2": Gpt(vocabulary=50257, features=768, layers=12, heads=12, length=1024, batch=4),
    "resnet-18": ResNet(widths=(64, 128, 256, 512), side=32, batch=128),
    # Tiny models for a trial of the programs.
    "mlp-tiny": Mlp(sizes=(16, 32, 10), batch=8),
    "lstm-tiny": Lstm(features=4, hidden=8, layers=2, time=6, batch=4),
    "gpt-tiny": Gpt(vocabulary=31, features=16, layers=2, heads=2, length=12, batch=2),
    "resnet-tiny": ResNet(widths=(4, 8), side=8, batch=2),
}


def write(model, path, dtype=torch.float32):
    """Returns how many parameters there are, and the bytes of one batch."""
    tensors = MODELS[model].tensors(torch.Generator().manual_seed(7))
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and ".running_" not in name:  # these stay f32
            tensors[name] = tensor.to(dtype)
    tensor_file.write(path, tensors)
    batch = (tensors["x"].nbytes + tensors["y"].nbytes) // BATCHES
    others = ("x", "y", "heads")
    parameters = sum(t.numel() for name, t in tensors.items() if name not in others)
    return parameters, batch
