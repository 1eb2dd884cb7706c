// Losses.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("F.mse_loss(x, y)", mse(x[0], x[1]));
EBB_SAME("F.l1_loss(x, y)", mae(x[0], x[1]));
EBB_SAME("F.mse_loss(x, y, reduction='sum'), F.mse_loss(x, y, reduction='none')",
         mse(x[0], x[1], {.reduction = LossReduction::sum}),
         mse(x[0], x[1], {.reduction = LossReduction::none}));
EBB_SAME("F.huber_loss(x, y, delta=0.5)", huber(x[0], x[1], {.delta = 0.5}));
EBB_SAME("F.smooth_l1_loss(x, y, beta=0.5)", smooth_l1(x[0], x[1], {.beta = 0.5}));
EBB_SAME("F.binary_cross_entropy_with_logits(x, z)", binary_cross_entropy_with_logits(x[0], x[1]));
EBB_SAME("F.binary_cross_entropy_with_logits(x, z, w, pos_weight=p)",
         binary_cross_entropy_with_logits(x[0], x[1], {.weights = x[2], .positive_weight = x[2]}));
EBB_SAME("F.binary_cross_entropy(p, z)", -mean(x[1] * log(x[0]) + (1 - x[1]) * log(1 - x[0])));
EBB_SAME("F.cross_entropy(x, i)", softmax_cross_entropy(x[0], x[1]));
EBB_SAME("F.cross_entropy(x, i, reduction='sum')",
         softmax_cross_entropy(x[0], x[1], {.reduction = LossReduction::sum}));
EBB_SAME("F.cross_entropy(x, i, w, label_smoothing=0.1)",
         softmax_cross_entropy(x[0], x[1], {.weights = x[2], .label_smoothing = 0.1}));
EBB_SAME("F.cross_entropy(x, i) with an i of -100",
         softmax_cross_entropy(x[0], x[1], {.ignored_label = -100}));
EBB_SAME("F.cross_entropy(x, i) with every i ignored",
         softmax_cross_entropy(x[0], x[1], {.ignored_label = -100}));
EBB_SAME("F.cross_entropy(x, i) of x [n, classes, d]",
         softmax_cross_entropy(transpose(x[0], 1, 2), x[1]));
EBB_SAME("F.cross_entropy(x, p) of probabilities", softmax_cross_entropy(x[0], x[1]));
EBB_SAME("F.nll_loss(l, i)", -mean(gather(x[0], 1, unsqueeze(x[1], 1))));
EBB_SAME("F.kl_div(log_q, p, reduction='batchmean')", kl_divergence(log(x[1]), log_softmax(x[0])));
EBB_SAME("F.kl_div(log_q, p)",
         kl_divergence(log(x[1]), log_softmax(x[0])) / static_cast<double>(x[0].size(-1)));

}  // namespace ebb::tests::parity
