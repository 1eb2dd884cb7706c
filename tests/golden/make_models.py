"""Golden values of the models: what PyTorch computes from the same weights, and learns in 10 steps.

    python make_models.py        (needs torch and numpy; made with PyTorch 2.15)

Writes mlp_, lstm_, conv_, generator_, attention_ and norms_*.safetensors, of f32 and f64. Parameters have ebb's names and layouts
(weights [in, out]), so that Parameters::load reads them. Of a parameter P: P before the first step,
"gradient.P" in the first step, "after.P" after ten of Adam with learning rate 0.01. "losses" [10]
are those before each step.
  mlp:  x [24, 12], y i32[24], scores [24, 5]; relu; mean softmax cross-entropy
  lstm: x [6, 9, 3], y [6, 1]; two layers of 8, a dense head on the last step; mean squared error.
        sequence [6, 9, 8], hidden and cell [2, 6, 8], prediction [6, 1], and "gradient.x"
  conv: x [6, 2, 9, 8], y i32[6], scores [6, 3]; 3x3 convolution to 4 channels with strides (2, 1),
        padding 1 and a relu, max_pool 2 with stride 1, a dilated convolution of 2 groups, avg_pool
        2 with padding 1, dense; mean softmax cross-entropy
  generator: x [6, 5], y [6, 2, 11, 9] in [-1, 1], image likewise; dense to 6 images of 3x3, a relu, a
        transposed 4x3 convolution with strides (2, 1) and padding 1 to 4 channels and a relu, another
        of 2 groups with strides (2, 3), padding 1 and output padding (1, 2), tanh; mean squared error
  attention: x i32[6, 5] of 11 tokens, y i32[6], scores [6, 3]; embedding, two causal heads, the
        mean over the length, dense; mean softmax cross-entropy
  norms: x and y [12, 6, 5]; BatchNorm1d(6), GroupNorm(3, 6), LayerNorm(5), with tanh between; mean squared
        error. "output" and "gradient.x" of the first step, of a running statistic S: S and "after.S";
        "evaluated": the output after all steps, by the running statistics
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
    """ebb's view of a PyTorch weight [out, in]; biases, kernels and tables are the same."""
    is_table = getattr(parameter, "is_table", False)
    return parameter.t() if parameter.dim() == 2 and not is_table else parameter


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
            for name, p in parameters.items():
                p.grad.is_table = getattr(p, "is_table", False)
                arrays[f"gradient.{name}"] = array(transposed(p.grad))
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
        parameters |= {
            f"lstm.{i}.input": getattr(layer, f"weight_ih_l{i}"),
            f"lstm.{i}.recurrent": getattr(layer, f"weight_hh_l{i}"),
            f"lstm.{i}.bias": getattr(layer, f"bias_ih_l{i}"),
            f"lstm.{i}.recurrent_bias": getattr(layer, f"bias_hh_l{i}"),
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


def of_layer(name, layer):
    return {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}


def conv(dtype):
    torch.manual_seed(13)
    first = torch.nn.Conv2d(2, 4, 3, stride=(2, 1), padding=1)
    second = torch.nn.Conv2d(4, 6, (2, 3), dilation=(1, 2), groups=2)
    head = torch.nn.Linear(24, 3)
    x = torch.randn(6, 2, 9, 8).to(dtype)
    y = torch.randint(0, 3, (6,))
    for module in (first, second, head):
        module.to(dtype)

    def scores():
        hidden = torch.nn.functional.max_pool2d(torch.relu(first(x)), 2, stride=1)
        hidden = torch.nn.functional.avg_pool2d(second(hidden), 2, padding=1)
        return head(hidden.flatten(1))

    arrays = {"x": array(x), "y": array(y).astype(np.int32), "scores": array(scores())}
    parameters = of_layer("first", first) | of_layer("second", second) | of_layer("head", head)
    return train(arrays, parameters, lambda: torch.nn.functional.cross_entropy(scores(), y))


def generator(dtype):
    torch.manual_seed(19)
    seed = torch.nn.Linear(5, 54)
    first = torch.nn.ConvTranspose2d(6, 4, (4, 3), stride=(2, 1), padding=1)
    second = torch.nn.ConvTranspose2d(4, 2, 3, stride=(2, 3), padding=1, output_padding=(1, 2), groups=2)
    x = torch.randn(6, 5).to(dtype)
    for module in (seed, first, second):
        module.to(dtype)

    def image():
        planes = torch.relu(seed(x)).unflatten(1, (6, 3, 3))
        return torch.tanh(second(torch.relu(first(planes))))

    y = torch.rand(image().shape).to(dtype) * 2 - 1
    arrays = {"x": array(x), "y": array(y), "image": array(image())}
    parameters = of_layer("seed", seed) | of_layer("first", first) | of_layer("second", second)
    return train(arrays, parameters, lambda: torch.nn.functional.mse_loss(image(), y))


def attention(dtype):
    torch.manual_seed(17)
    table = torch.nn.Embedding(11, 8)
    layers = {name: torch.nn.Linear(8, 8) for name in ("query", "key", "value", "output")}
    head = torch.nn.Linear(8, 3)
    x = torch.randint(0, 11, (6, 5))
    y = torch.randint(0, 3, (6,))
    for module in (table, head, *layers.values()):
        module.to(dtype)
    table.weight.is_table = True

    def scores():
        features = table(x)
        q, k, v = (
            layers[name](features).unflatten(-1, (2, 4)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return head(layers["output"](heads.transpose(1, 2).flatten(-2)).mean(1))

    arrays = {
        "x": array(x).astype(np.int32),
        "y": array(y).astype(np.int32),
        "scores": array(scores()),
    }
    parameters = {"table.weight": table.weight}
    for name, layer in layers.items():
        parameters |= of_layer(f"attention.{name}", layer)
    parameters |= of_layer("head", head)
    return train(arrays, parameters, lambda: torch.nn.functional.cross_entropy(scores(), y))


def norms(dtype):
    torch.manual_seed(5)
    batch, group, layer = torch.nn.BatchNorm1d(6), torch.nn.GroupNorm(3, 6), torch.nn.LayerNorm(5)
    x, y = torch.randn(12, 6, 5) * 2 + 1, torch.randn(12, 6, 5)
    parameters = {}
    for name, module in {"batch": batch, "group": group, "layer": layer}.items():
        module.weight.data = 1 + torch.randn(module.weight.shape) / 3
        module.bias.data = torch.randn(module.bias.shape) / 3
        module.to(dtype)
        parameters |= {f"{name}.scale": module.weight, f"{name}.shift": module.bias}
    states = {"batch.running_mean": batch.running_mean, "batch.running_variance": batch.running_var}
    x, y = x.to(dtype).requires_grad_(True), y.to(dtype)
    arrays = {"x": array(x), "y": array(y)} | {name: array(value) for name, value in states.items()}

    def output():
        return layer(torch.tanh(group(torch.tanh(batch(x)))))

    def loss():
        out = output()
        arrays.setdefault("output", array(out))
        if x.grad is not None:
            arrays.setdefault("gradient.x", array(x.grad))
        return torch.nn.functional.mse_loss(out, y)

    train(arrays, parameters, loss)
    arrays.update({f"after.{name}": array(value) for name, value in states.items()})
    batch.eval()
    return arrays | {"evaluated": array(output())}


for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    for model in (mlp, lstm, conv, generator, attention, norms):
        write(os.path.join(HERE, f"{model.__name__}_{name}.safetensors"), model(dtype))
