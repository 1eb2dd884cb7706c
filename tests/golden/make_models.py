"""Golden values of the models: what PyTorch computes from the same weights, and learns in 10 steps.

    python make_models.py        (needs torch and numpy; made with PyTorch 2.15)

Writes mlp_f32, mlp_f64, lstm_f32 and lstm_f64.safetensors. Parameters have ebb's names and layouts
(weights [in, out]), so that Parameters::load reads them. Of a parameter P: P before the first step,
"gradient.P" in the first step, "after.P" after ten of Adam with learning rate 0.01. "losses" [10]
are those before each step.
  mlp:  x [24, 12], y i32[24], scores [24, 5]; relu; mean softmax cross-entropy
  lstm: x [6, 9, 3], y [6, 1]; two layers of 8, a dense head on the last step; mean squared error.
        sequence [6, 9, 8], hidden and cell [2, 6, 8], prediction [6, 1], and "gradient.x"
PyTorch's LSTM has two biases that are added. The second is zero here and stays so: ebb has one.
"""

import os

import numpy as np
import torch

from safetensors_writer import write

STEPS = 10
HERE = os.path.dirname(os.path.abspath(__file__))


def array(tensor):
    return tensor.detach().numpy().copy()


def transposed(parameter):
    """ebb's view of a PyTorch weight [out, in]; biases are the same."""
    return parameter.t() if parameter.dim() == 2 else parameter


def train(arrays, parameters, loss_of):
    """Adds what ten steps of Adam give to `arrays`; parameters is {ebb's name: PyTorch's}."""
    arrays |= {name: array(transposed(p)) for name, p in parameters.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        losses.append(array(loss))
        if step == 0:
            arrays |= {f"gradient.{n}": array(transposed(p.grad)) for n, p in parameters.items()}
        optimizer.step()
    arrays |= {f"after.{name}": array(transposed(p)) for name, p in parameters.items()}
    arrays["losses"] = np.stack(losses)
    return arrays


def mlp(dtype):
    torch.manual_seed(7)
    layers = [torch.nn.Linear(12, 16), torch.nn.Linear(16, 8), torch.nn.Linear(8, 5)]
    x = torch.randn(24, 12)
    y = torch.randint(0, 5, (24,))
    for layer in layers:
        layer.to(dtype)
    x = x.to(dtype)

    def scores():
        hidden = torch.relu(layers[1](torch.relu(layers[0](x))))
        return layers[2](hidden)

    arrays = {"x": array(x), "y": array(y).astype(np.int32), "scores": array(scores())}
    parameters = {}
    for i, layer in enumerate(layers):
        parameters |= {f"{i}.weight": layer.weight, f"{i}.bias": layer.bias}
    return train(arrays, parameters, lambda: torch.nn.functional.cross_entropy(scores(), y))


def lstm(dtype):
    torch.manual_seed(11)
    layer = torch.nn.LSTM(3, 8, num_layers=2, batch_first=True)
    head = torch.nn.Linear(8, 1)
    x = torch.randn(6, 9, 3).to(dtype)
    y = torch.randn(6, 1).to(dtype)
    for module in (layer, head):
        module.to(dtype)
    parameters = {}
    for i in range(2):
        second = getattr(layer, f"bias_hh_l{i}")
        second.data.zero_()
        second.requires_grad_(False)
        parameters |= {
            f"lstm.{i}.input": getattr(layer, f"weight_ih_l{i}"),
            f"lstm.{i}.recurrent": getattr(layer, f"weight_hh_l{i}"),
            f"lstm.{i}.bias": getattr(layer, f"bias_ih_l{i}"),
        }
    parameters |= {"head.weight": head.weight, "head.bias": head.bias}

    def prediction():
        return head(layer(x)[0][:, -1])

    sequence, (hidden, cell) = layer(x)
    arrays = {
        "x": array(x),
        "y": array(y),
        "sequence": array(sequence),
        "hidden": array(hidden),
        "cell": array(cell),
        "prediction": array(prediction()),
    }
    x.requires_grad_(True)
    torch.nn.functional.mse_loss(prediction(), y).backward()
    arrays["gradient.x"] = array(x.grad)
    x.requires_grad_(False)
    return train(arrays, parameters, lambda: torch.nn.functional.mse_loss(prediction(), y))


for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    write(os.path.join(HERE, f"mlp_{name}.safetensors"), mlp(dtype))
    write(os.path.join(HERE, f"lstm_{name}.safetensors"), lstm(dtype))
