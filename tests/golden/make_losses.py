"""Golden values of losses: what PyTorch computes.

    python make_losses.py        (needs torch and numpy; made with PyTorch 2.15)

Writes losses_f32 and losses_f64.safetensors: scores and probabilities [4, 3, 7], labels i64[4, 3]
with one of -100, weights [7]; a and b [5, 6], targets [5, 6] from 0 to 1, positive_weight [6]. Of
each loss: its value, under the name in `losses`, and "gradient." with that name, of the sum of the
losses with respect to the scores, or to a.
"""

import os

import torch
from torch.nn import functional as F

from safetensors_writer import write

HERE = os.path.dirname(os.path.abspath(__file__))


def array(tensor):
    return tensor.detach().contiguous().numpy().copy()


def make(dtype):
    torch.manual_seed(3)
    scores = (torch.randn(4, 3, 7) * 3).to(dtype).requires_grad_(True)
    labels = torch.randint(0, 7, (4, 3))
    labels[2, 1] = -100
    probabilities = torch.softmax(torch.randn(4, 3, 7), -1).to(dtype)
    weights = (torch.rand(7) + 0.5).to(dtype)
    a, b = (torch.randn(5, 6) * 2).to(dtype).requires_grad_(True), torch.randn(5, 6).to(dtype)
    targets, positive = torch.rand(5, 6).to(dtype), (torch.rand(6) * 3).to(dtype)
    arrays = {
        "scores": scores, "labels": labels, "probabilities": probabilities, "weights": weights,
        "a": a, "b": b, "targets": targets, "positive_weight": positive,
    }

    def entropy(target, **options):  # PyTorch has the classes second
        target = target.movedim(-1, 1) if target.dim() == 3 else target
        return F.cross_entropy(scores.movedim(-1, 1), target, **options)

    losses = {}
    for reduction in ("mean", "sum", "none"):
        how = {"reduction": reduction}
        every = {"weight": weights, "label_smoothing": 0.2} | how
        losses |= {
            f"labels.{reduction}": entropy(labels, **how),
            f"labels.weights.{reduction}": entropy(labels, weight=weights, **how),
            f"labels.weights.smoothed.{reduction}": entropy(labels, **every),
            f"probabilities.{reduction}": entropy(probabilities, **how),
            f"probabilities.weights.smoothed.{reduction}": entropy(probabilities, **every),
            f"mse.{reduction}": F.mse_loss(a, b, **how),
            f"mae.{reduction}": F.l1_loss(a, b, **how),
            f"huber.{reduction}": F.huber_loss(a, b, delta=0.7, **how),
            f"smooth_l1.{reduction}": F.smooth_l1_loss(a, b, beta=0.7, **how),
            f"binary.{reduction}": F.binary_cross_entropy_with_logits(a, targets, **how),
            f"binary.weights.{reduction}": F.binary_cross_entropy_with_logits(
                a, targets, weight=positive, pos_weight=positive, **how),
        }
        log_q, log_p = torch.log_softmax(a, -1), torch.log_softmax(b, -1)
        terms = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
        losses[f"kl.{reduction}"] = {"mean": terms.mean(), "sum": terms.sum(), "none": terms}[reduction]
    for name, loss in losses.items():
        of = scores if name.startswith(("labels", "probabilities")) else a
        arrays[name] = loss
        arrays[f"gradient.{name}"] = torch.autograd.grad(loss.sum(), of, retain_graph=True)[0]
    return {name: array(value) for name, value in arrays.items()}


for name, dtype in {"f32": torch.float32, "f64": torch.float64}.items():
    write(os.path.join(HERE, f"losses_{name}.safetensors"), make(dtype))
