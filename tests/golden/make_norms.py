"""Golden values of normalisations: what PyTorch's layers compute, and learn in 10 steps.

    python make_norms.py        (needs torch and numpy; made with PyTorch 2.15)

Writes norms_f32 and norms_f64.safetensors: x and y [12, 6, 5]; BatchNorm1d(6), GroupNorm(3, 6) and
LayerNorm(5), with tanh between them, trained on the mean squared error by ten steps of Adam with
learning rate 0.01. Parameters and running statistics have ebb's names. Of a parameter P: P before
the first step, "gradient.P" in the first step, "after.P" after ten; of a running statistic S: S and
"after.S". "losses" [10] are those before each step, "output" and "gradient.x" those of the first, and
"evaluated" the output after all steps, by the running statistics.
"""

import os

import numpy as np
import torch

from safetensors_writer import write

STEPS = 10
HERE = os.path.dirname(os.path.abspath(__file__))


def array(tensor):
    return tensor.detach().numpy().copy()


def norms(dtype):
    torch.manual_seed(5)
    batch, group, layer = torch.nn.BatchNorm1d(6), torch.nn.GroupNorm(3, 6), torch.nn.LayerNorm(5)
    x, y = torch.randn(12, 6, 5) * 2 + 1, torch.randn(12, 6, 5)
    named = {"batch": batch, "group": group, "layer": layer}
    parameters, states = {}, {}
    for name, module in named.items():
        module.weight.data = 1 + torch.randn(module.weight.shape) / 3
        module.bias.data = torch.randn(module.bias.shape) / 3
        module.to(dtype)
        parameters |= {f"{name}.scale": module.weight, f"{name}.shift": module.bias}
    states = {"batch.running_mean": batch.running_mean, "batch.running_variance": batch.running_var}
    x, y = x.to(dtype).requires_grad_(True), y.to(dtype)

    def output():
        return layer(torch.tanh(group(torch.tanh(batch(x)))))

    arrays = {"x": array(x), "y": array(y)}
    arrays |= {name: array(value) for name, value in (parameters | states).items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        out = output()
        loss = torch.nn.functional.mse_loss(out, y)
        loss.backward()
        losses.append(array(loss))
        if step == 0:
            arrays |= {"output": array(out), "gradient.x": array(x.grad)}
            arrays |= {f"gradient.{name}": array(p.grad) for name, p in parameters.items()}
        optimizer.step()
    arrays |= {f"after.{name}": array(value) for name, value in (parameters | states).items()}
    batch.eval()
    return arrays | {"losses": np.stack(losses), "evaluated": array(output())}


for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    write(os.path.join(HERE, f"norms_{name}.safetensors"), norms(dtype))
