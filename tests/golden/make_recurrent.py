"""Writes recurrent_f32 and recurrent_f64.safetensors: recurrent layers over sequences of their own lengths.

    python make_recurrent.py        (needs torch and numpy; made with PyTorch 2.15)

x [4, 6, 3] with lengths 6, 1, 4, 3; an LSTM of two layers of 5, one way and both ways, from given states, by
PyTorch's packed sequences. Parameters have ebb's names and layouts: weights are transposed, and PyTorch's second
bias, zero here, is left out. GRUs likewise, without cells, of the loss sum(sequence^2) + sum(hidden^2): of their
second bias the part of n is there, behind the first. For each: "sequence" (0 behind its end), "hidden", "cell", and of the loss
sum(sequence^2) + sum(hidden cell) the gradients of x, of the given states and of the parameters.
"""

import os

import torch

from safetensors_writer import write

HERE = os.path.dirname(os.path.abspath(__file__))


def lstm(dtype, arrays, prefix, bidirectional):
    torch.manual_seed(5)
    ways = 2 if bidirectional else 1
    layer = torch.nn.LSTM(3, 5, num_layers=2, batch_first=True, bidirectional=bidirectional).to(dtype)
    for name, parameter in layer.named_parameters():
        if name.startswith("bias_hh"):
            torch.nn.init.zeros_(parameter)
    lengths = torch.tensor([6, 1, 4, 3])
    x, hidden, cell = torch.randn(4, 6, 3).to(dtype), torch.randn(2 * ways, 4, 5).to(dtype), torch.randn(2 * ways, 4, 5).to(dtype)
    for given in (x, hidden, cell):
        given.requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, (h, c) = layer(packed, (hidden, cell))
    sequence, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    (sequence.square().sum() + (h * c).sum()).backward()
    put = {"x": x, "initial_hidden": hidden, "initial_cell": cell}
    for i in range(2):
        for way in range(ways):
            of = f"_l{i}" + ("_reverse" if way else "")
            to = f"{i}." + ("reverse." if way else "")
            put[to + "input"] = getattr(layer, "weight_ih" + of)
            put[to + "recurrent"] = getattr(layer, "weight_hh" + of)
            put[to + "bias"] = getattr(layer, "bias_ih" + of)
    transposed = ("input", "recurrent")
    for name, tensor in put.items():
        for kind, value in (("", tensor), ("gradient.", tensor.grad)):
            if name.split(".")[-1] in transposed:
                value = value.t()
            arrays[f"{kind}{prefix}.{name}"] = value.detach().contiguous().numpy()
    arrays[f"{prefix}.lengths"] = lengths.numpy()
    for name, tensor in (("sequence", sequence), ("hidden", h), ("cell", c)):
        arrays[f"{prefix}.{name}"] = tensor.detach().contiguous().numpy()


def gru(dtype, arrays, prefix, bidirectional):
    torch.manual_seed(6)
    ways = 2 if bidirectional else 1
    layer = torch.nn.GRU(3, 5, num_layers=2, batch_first=True, bidirectional=bidirectional).to(dtype)
    for name, parameter in layer.named_parameters():
        if name.startswith("bias_hh"):
            torch.nn.init.zeros_(parameter[:10])
    lengths = torch.tensor([6, 1, 4, 3])
    x, hidden = torch.randn(4, 6, 3).to(dtype), torch.randn(2 * ways, 4, 5).to(dtype)
    for given in (x, hidden):
        given.requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, h = layer(packed, hidden)
    sequence, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    (sequence.square().sum() + h.square().sum()).backward()
    put = {"x": (x, x.grad), "initial_hidden": (hidden, hidden.grad)}
    for i in range(2):
        for way in range(ways):
            of = f"_l{i}" + ("_reverse" if way else "")
            to = f"{i}." + ("reverse." if way else "")
            for name, weight in (("input", "weight_ih"), ("recurrent", "weight_hh")):
                parameter = getattr(layer, weight + of)
                put[to + name] = (parameter.t(), parameter.grad.t())
            first, second = getattr(layer, "bias_ih" + of), getattr(layer, "bias_hh" + of)
            put[to + "bias"] = (torch.cat([first, second[10:]]), torch.cat([first.grad, second.grad[10:]]))
    for name, (value, gradient) in put.items():
        arrays[f"{prefix}.{name}"] = value.detach().contiguous().numpy()
        arrays[f"gradient.{prefix}.{name}"] = gradient.contiguous().numpy()
    arrays[f"{prefix}.lengths"] = lengths.numpy()
    for name, tensor in (("sequence", sequence), ("hidden", h)):
        arrays[f"{prefix}.{name}"] = tensor.detach().contiguous().numpy()


for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
    arrays = {}
    lstm(dtype, arrays, "lstm", False)
    lstm(dtype, arrays, "both", True)
    gru(dtype, arrays, "gru", False)
    gru(dtype, arrays, "gru_both", True)
    write(os.path.join(HERE, f"recurrent_{name}.safetensors"), arrays)
