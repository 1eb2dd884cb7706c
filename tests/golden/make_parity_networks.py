"""The rows of make_parity.py that are about networks: their functions, losses, modules, optimizers."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from parity_rows import calls_of

random = np.random.default_rng(6)


def normal(*shape):
    return random.standard_normal(shape)


def made(name, *x):
    """What the call in a row's name gives."""
    return calls_of(name, {"nn": nn, "optim": torch.optim, **vars(torch.optim.lr_scheduler)})[0][1](*x)


def named(names, values):
    """What is assigned to a module's parameters, without a gradient."""
    return {name: value.detach() for name, value in zip(names, values)}


A, B = normal(2, 4), normal(2, 4)
AT_ENDS = np.array([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan])


def make_activations(torch_row):
    torch_row("torch.relu(x), F.relu(x)", torch.relu, F.relu, np.array([-1.0, 0.0, 2.0]))
    torch_row("torch.relu(nan)", AT_ENDS, gradient=False)
    torch_row("F.relu6(x), F.hardtanh(x, 0, 6)", F.relu6, lambda x: F.hardtanh(x, 0, 6),
              np.array([-1.0, 0.5, 5.0, 7.0]))

    def at_ends():
        x = torch.tensor([0.0, 6.0], dtype=torch.float64, requires_grad=True)
        return [torch.autograd.grad(f(x).sum(), x)[0] for f in (F.relu6, lambda x: F.hardtanh(x, 0, 6))]

    torch_row("the gradient of F.relu6 and F.hardtanh at their ends", at_ends)
    torch_row("F.leaky_relu(x)", A)
    torch_row("F.elu(x)", A)
    torch_row("F.selu(x)", A)
    torch_row("F.silu(x)", A)
    torch_row("F.mish(x)", A)
    torch_row("F.gelu(x)", A)
    torch_row("F.gelu(x, approximate='tanh')", A)
    torch_row("torch.sigmoid(x)", A)
    torch_row("F.logsigmoid(x)", A)
    torch_row("F.softplus(x)", np.array([-3.0, 0.0, 1.0, 19.0]))
    torch_row("F.softplus(x) beyond 20", F.softplus, np.array([20.5, 30.0]))
    torch_row("F.softsign(x), F.tanhshrink(x)", A)
    torch_row("F.glu(x)", A)
    torch_row("F.prelu(x, a)", A, np.array([0.2]))
    torch_row("F.softmax(x, dim=0), F.log_softmax(x, dim=-1)", A)
    torch_row("F.softmax with -inf and of -inf alone",
              lambda x, y: (F.softmax(x, dim=0), F.softmax(y, dim=0)),
              np.array([1.0, -np.inf, 2.0]), np.full(2, -np.inf), gradient=False)
    torch_row("F.dropout(x, 0.5, training=False)", A)


def make_convolutions(torch_row):
    image = normal(2, 4, 5, 6)
    torch_row("F.conv2d(x, w, b)", image, normal(3, 4, 3, 2), normal(3))
    torch_row("F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=2, groups=2)", image,
              normal(6, 2, 2, 2))
    torch_row("F.conv2d(x, w, padding='same')", image, normal(2, 4, 2, 3))
    torch_row("F.conv1d(x, w, b, padding=1)", normal(2, 3, 7), normal(4, 3, 3), normal(4))
    plane = normal(1, 2, 5, 6)
    torch_row("F.max_pool2d(x, 2)", plane)
    torch_row("F.max_pool2d(x, 3, 2, padding=1)", -abs(plane))
    torch_row("F.max_pool1d(x, 2, 1), F.avg_pool1d(x, 2, 1)", normal(1, 2, 5))
    torch_row("F.avg_pool2d(x, 3, 2, padding=1)", plane)
    torch_row("F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False)", plane)
    torch_row("F.adaptive_avg_pool2d(x, 1)", plane)
    torch_row("F.adaptive_max_pool2d(x, 1)", plane)
    torch_row("F.interpolate(x, scale_factor=2)", normal(1, 2, 2, 3))
    torch_row("F.pixel_shuffle(x, 2)", normal(1, 8, 2, 3))


def make_norms(torch_row):
    x, scale, shift = normal(2, 4, 3), normal(4), normal(4)
    last = normal(3), normal(3)
    torch_row("F.layer_norm(x, (3,), w, b)", lambda x, w, b: F.layer_norm(x, (3,), w, b), x, *last)
    torch_row("F.layer_norm(x, (4, 3))", x)
    torch_row("F.rms_norm(x, (3,), w)", x, last[0])
    torch_row("F.rms_norm(x, (3,), w, eps=1e-5)", x, last[0])
    torch_row("F.group_norm(x, 2, w, b)", x, scale, shift)
    torch_row("F.instance_norm(x)", x)

    def training(x, w, b):
        mean, variance = torch.full((4,), 0.5).double(), torch.full((4,), 2.0).double()
        y = F.batch_norm(x, mean, variance, w, b, training=True)
        return y, mean, variance

    torch_row("F.batch_norm(x, m, v, w, b, training=True)", training, x, scale, shift)
    torch_row("F.batch_norm(x, m, v, w, b)",
              lambda x, w, b, m, v: F.batch_norm(x, m.detach(), v.detach(), w, b), x, scale, shift, normal(4), abs(normal(4)))


def make_attention(torch_row):
    sdpa = F.scaled_dot_product_attention
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 2)
    mask = random.random((3, 5)) < 0.6
    mask[:, 0] = True
    torch_row("F.scaled_dot_product_attention(q, k, v)", q, k, v)
    torch_row("F.scaled_dot_product_attention(.., is_causal=True)",
              lambda q, k, v: sdpa(q, k, v, is_causal=True), q, normal(1, 2, 3, 4), normal(1, 2, 3, 2))
    torch_row("F.scaled_dot_product_attention(.., attn_mask of bool)",
              lambda q, k, v, m: sdpa(q, k, v, m), q, k, v, mask)
    torch_row("F.scaled_dot_product_attention(.., attn_mask of floats, scale=s)",
              lambda q, k, v, m: sdpa(q, k, v, m, scale=0.3), q, k, v, normal(3, 5))
    nobody = mask.copy()
    nobody[1] = False
    torch_row("attention of a query for which no key counts",
              lambda q, k, v, m: sdpa(q, k, v, m), q, k, v, nobody, gradient=False)
    attention = nn.MultiheadAttention(4, 2, batch_first=True).double()
    weights = {name: normal(*p.shape) for name, p in attention.named_parameters()}
    torch_row("nn.MultiheadAttention(4, 2, batch_first=True)",
              lambda x, *w: functional_call(attention, named(weights, w), (x, x, x))[0],
              normal(2, 3, 4), *weights.values())


def make_recurrent(torch_row):
    def lstm(name, *options, gradient=True, lengths=None, **more):
        module = nn.LSTM(3, 2, *options, batch_first=True, **more).double()
        weights = {n: normal(*p.shape) for n, p in module.named_parameters()}

        def run(x, *w):
            if lengths is not None:
                x = nn.utils.rnn.pack_padded_sequence(
                    x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
            y, (h, c) = functional_call(module, dict(zip(weights, w)), (x,))
            if lengths is not None:
                y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]
            return y, h, c

        torch_row(name, run, normal(2, 4, 3), *weights.values(), gradient=gradient)

    lstm("nn.LSTM(3, 2, batch_first=True)")
    lstm("nn.LSTM(3, 2, num_layers=2)", 2)
    lstm("nn.LSTM(3, 2, bidirectional=True)", bidirectional=True, gradient=False)
    lstm("nn.utils.rnn.pack_padded_sequence(x, [4, 2])", lengths=[4, 2])
    cell = nn.LSTMCell(3, 2).double()
    weights = {n: normal(*p.shape) for n, p in cell.named_parameters()}
    torch_row("nn.LSTMCell(3, 2)",
              lambda x, h, c, *w: functional_call(cell, dict(zip(weights, w)), (x, (h, c))),
              normal(2, 3), normal(2, 2), normal(2, 2), *weights.values())


def make_gru(torch_row):
    for name, make, inputs in (
        ("nn.GRU(3, 2, batch_first=True)", lambda: nn.GRU(3, 2, batch_first=True), [normal(2, 4, 3)]),
        ("nn.GRUCell(3, 2)", lambda: nn.GRUCell(3, 2), [normal(2, 3), normal(2, 2)]),
    ):
        module = make().double()
        weights = {n: normal(*p.shape) for n, p in module.named_parameters()}

        def run(*x):
            values = dict(zip(weights, x[len(inputs):]))
            return functional_call(module, values, x[: len(inputs)])

        torch_row(name, run, *inputs, *weights.values())


def make_losses(torch_row):
    targets, positive = random.random((2, 4)), random.random(4) + 0.5
    for name, function in {"mse_loss": F.mse_loss, "l1_loss": F.l1_loss}.items():
        torch_row(f"F.{name}(x, y)", function, A, B)
    torch_row("F.mse_loss(x, y, reduction='sum'), F.mse_loss(x, y, reduction='none')", A, B)
    torch_row("F.huber_loss(x, y, delta=0.5)", A, B)
    torch_row("F.smooth_l1_loss(x, y, beta=0.5)", A, B)
    torch_row("F.binary_cross_entropy_with_logits(x, z)", A, targets)
    torch_row("F.binary_cross_entropy_with_logits(x, z, w, pos_weight=p)",
              lambda x, z, p: F.binary_cross_entropy_with_logits(x, z, p.detach(), pos_weight=p.detach()),
              A, targets, positive)
    torch_row("F.binary_cross_entropy(p, z)", random.random((2, 4)), targets)
    scores, labels = normal(3, 4), np.array([2, 0, 3])
    torch_row("F.cross_entropy(x, i)", scores, labels)
    torch_row("F.cross_entropy(x, i, reduction='sum')", scores, labels)
    torch_row("F.cross_entropy(x, i, w, label_smoothing=0.1)",
              lambda x, i, w: F.cross_entropy(x, i, w.detach(), label_smoothing=0.1), scores, labels,
              positive)
    ignored = np.array([2, -100, 3])
    torch_row("F.cross_entropy(x, i) with an i of -100", F.cross_entropy, scores, ignored)
    torch_row("F.cross_entropy(x, i) with every i ignored", F.cross_entropy, scores,
              np.full(3, -100), gradient=False)
    torch_row("F.cross_entropy(x, i) of x [n, classes, d]", F.cross_entropy, normal(2, 4, 3),
              np.array([[0, 1, 2], [3, 3, 0]]))
    probabilities = random.random((3, 4))
    probabilities /= probabilities.sum(1, keepdims=True)
    torch_row("F.cross_entropy(x, p) of probabilities",
              lambda x, p: F.cross_entropy(x, p.detach()), scores, probabilities)
    torch_row("F.nll_loss(l, i)", scores, labels)
    torch_row("F.kl_div(log_q, p, reduction='batchmean')",
              lambda q, p: F.kl_div(q.log_softmax(-1), p.detach(), reduction="batchmean"), scores,
              probabilities)
    torch_row("F.kl_div(log_q, p)", lambda q, p: F.kl_div(q.log_softmax(-1), p.detach()), scores,
              probabilities)


STEPS = 5


def make_optimizers(rows):
    start, gradients = normal(2, 3), normal(STEPS, 2, 3)

    def optimizer(name):
        parameter = torch.tensor(start, requires_grad=True)
        rule, values = made(name, [parameter]), []
        for gradient in gradients:
            parameter.grad = torch.tensor(gradient)
            rule.step()
            values.append(parameter.detach().numpy().copy())
        rows.add(name, [start, gradients], [np.stack(values)])

    optim = torch.optim
    optimizer("optim.SGD(p, 0.1)")
    optimizer("optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.05)")
    optimizer("optim.SGD(p, 0.1, momentum=0.9, nesterov=True)")
    optimizer("optim.Adam(p, eps=1e-2)")
    optimizer("optim.Adam(p, weight_decay=0.1)")
    optimizer("optim.AdamW(p)")
    optimizer("optim.RMSprop(p, eps=1e-2)")
    optimizer("optim.RMSprop(p, momentum=0.9, centered=True)")
    optimizer("optim.Adagrad(p, initial_accumulator_value=0.1)")

    def schedule(name):
        rule = optim.SGD([torch.zeros(1, requires_grad=True)], 0.5)
        rates, schedule = [], made(name, rule)
        for _ in range(14):
            rates.append(rule.param_groups[0]["lr"])
            rule.step()
            schedule.step()
        rows.add(name, [], [np.array(rates)])

    schedule("StepLR(o, 3, gamma=0.5)")
    schedule("ExponentialLR(o, 0.9)")
    schedule("PolynomialLR(o, 10, power=2)")
    schedule("LinearLR(o, 0.25, total_iters=3)")
    schedule("CosineAnnealingLR(o, 13, eta_min=0.1)")

    def clipped(function):
        parameters = [torch.zeros(2, 3, requires_grad=True) for _ in range(2)]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = torch.tensor(gradient, dtype=torch.float64).float()
        result = function(parameters)
        return [p.grad.numpy() for p in parameters], result

    two = [gradients[0].astype(np.float32), gradients[1].astype(np.float32)]
    values, norm = clipped(lambda p: nn.utils.clip_grad_norm_(p, 0.7))
    rows.add("nn.utils.clip_grad_norm_(p, 0.7)", two, [*values, norm.numpy()])
    values, _ = clipped(lambda p: nn.utils.clip_grad_value_(p, 0.7))
    rows.add("nn.utils.clip_grad_value_(p, 0.7)", two, values)

    model = nn.Linear(3, 1, bias=False).double()
    average = optim.swa_utils.AveragedModel(
        model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
    values, averages = normal(4, 1, 3), []
    for value in values:
        with torch.no_grad():
            model.weight.copy_(torch.tensor(value))
        average.update_parameters(model)
        averages.append(average.module.weight.detach().numpy().copy())
    rows.add("swa_utils.get_ema_multi_avg_fn(0.9)", [values], [np.stack(averages)])


def make_modules(torch_row):
    def module(name, x, **options):
        layer = made(name).double()
        weights = {n: normal(*p.shape) for n, p in layer.named_parameters()}
        torch_row(name, lambda x, *w: functional_call(layer, named(weights, w), (x,)), x,
                  *weights.values(), **options)

    module("nn.Linear(3, 2)", normal(2, 5, 3))
    module("nn.Conv2d(2, 4, 3, padding=1, groups=2)", normal(1, 2, 4, 3))
    module("nn.Embedding(5, 3)", np.array([[0, 4], [2, 2]]))
    module("nn.LayerNorm(4)", normal(3, 4))
    module("nn.GroupNorm(2, 4)", normal(2, 4, 3))
    module("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", normal(5, 3))

    norm = nn.BatchNorm2d(2).double()

    def train_and_evaluate(x, scale, shift):
        functional_call(norm, {"weight": scale, "bias": shift}, (x,))  # updates the running values
        mean, variance = norm.running_mean.clone(), norm.running_var.clone()
        norm.eval()
        return functional_call(norm, {"weight": scale, "bias": shift}, (x,)), mean, variance

    torch_row("nn.BatchNorm2d(2), train() and eval()", train_and_evaluate, normal(3, 2, 2, 2),
              normal(2), normal(2), gradient=False)


def make_transposed_convolutions(torch_row):
    image = normal(2, 4, 3, 4)
    torch_row("F.conv_transpose2d(x, w, b)", image, normal(4, 3, 3, 2), normal(3))
    torch_row("F.conv_transpose2d(x, w, stride=(2, 3), padding=1, output_padding=(1, 2), groups=2)",
              image, normal(4, 3, 3, 4))
    torch_row("F.conv_transpose2d(x, w, output_padding=2, dilation=3)", image, normal(4, 1, 2, 2))
    torch_row("F.conv_transpose1d(x, w, b, stride=2, padding=1)", normal(2, 3, 5), normal(3, 4, 3),
              normal(4))
    layer = nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2).double()
    torch_row("nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2)",
              lambda x, *w: functional_call(layer, named(["weight", "bias"], w), (x,)),
              normal(1, 2, 4, 3), normal(*layer.weight.shape), normal(4))


def make(rows, torch_row):
    make_activations(torch_row)
    make_convolutions(torch_row)
    make_norms(torch_row)
    make_attention(torch_row)
    make_recurrent(torch_row)
    make_losses(torch_row)
    make_optimizers(rows)
    make_modules(torch_row)
    make_gru(torch_row)
    make_transposed_convolutions(torch_row)
    torch_row("F.linear(F.embedding(i, w), w)", np.array([[0, 4], [2, 2]]), normal(5, 3))
