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


def stack(dtype, arrays, prefix, kind, bidirectional):
    is_lstm = kind is torch.nn.LSTM
    torch.manual_seed(5 if is_lstm else 6)
    ways = 2 if bidirectional else 1
    layer = kind(3, 5, num_layers=2, batch_first=True, bidirectional=bidirectional).to(dtype)
    without = 20 if is_lstm else 10  # elements of the second bias that are zero
    for name, parameter in layer.named_parameters():
        if name.startswith("bias_hh"):
            torch.nn.init.zeros_(parameter[:without])
    lengths = torch.tensor([6, 1, 4, 3])
    x = torch.randn(4, 6, 3).to(dtype).requires_grad_()
    given = [torch.randn(2 * ways, 4, 5).to(dtype).requires_grad_() for _ in range(2 if is_lstm else 1)]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, after = layer(packed, tuple(given) if is_lstm else given[0])
    states = after if is_lstm else (after,)
    sequence, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    (sequence.square().sum() + (states[0] * states[-1]).sum()).backward()
    put = {"x": (x, x.grad)}
    put |= {f"initial_{name}": (s, s.grad) for name, s in zip(("hidden", "cell"), given)}
    for i in range(2):
        for way in range(ways):
            of = f"_l{i}" + ("_reverse" if way else "")
            to = f"{i}." + ("reverse." if way else "")
            for name, weight in (("input", "weight_ih"), ("recurrent", "weight_hh")):
                parameter = getattr(layer, weight + of)
                put[to + name] = (parameter.t(), parameter.grad.t())
            first, second = getattr(layer, "bias_ih" + of), getattr(layer, "bias_hh" + of)
            put[to + "bias"] = (torch.cat([first, second[without:]]),
                                torch.cat([first.grad, second.grad[without:]]))
    for name, (value, gradient) in put.items():
        arrays[f"{prefix}.{name}"] = value.detach().contiguous().numpy()
        arrays[f"gradient.{prefix}.{name}"] = gradient.contiguous().numpy()
    arrays[f"{prefix}.lengths"] = lengths.numpy()
    for name, tensor in zip(("sequence", "hidden", "cell"), (sequence, *states)):
        arrays[f"{prefix}.{name}"] = tensor.detach().contiguous().numpy()


for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
    arrays = {}
    stack(dtype, arrays, "lstm", torch.nn.LSTM, False)
    stack(dtype, arrays, "both", torch.nn.LSTM, True)
    stack(dtype, arrays, "gru", torch.nn.GRU, False)
    stack(dtype, arrays, "gru_both", torch.nn.GRU, True)
    write(os.path.join(HERE, f"recurrent_{name}.safetensors"), arrays)
