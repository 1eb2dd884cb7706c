#pragma once
#include "ebb/core/ops/arguments.h"
#include "ebb/core/ops/cross_entropy.h"
#include "ebb/core/ops/softmax.h"

namespace ebb {

// Losses of tensors a and b of one shape and dtype, floating. Nothing broadcasts here: a column
// beside a row would silently compare everything with everything. Each gives a scalar, or with
// LossReduction::none a loss for each element. Throw ShapeError. A reduction may stand for the
// options, and so may the number of huber and smooth_l1.

struct LossOptions {
  LossReduction reduction = LossReduction::mean;
};

// (a - b)^2.
Tensor mse(const Operand& a, const Operand& b, const LossOptions& options = {});
EBB_TAKES_REDUCTION(mse, LossOptions)

// |a - b|. The gradient at 0 is 0.
Tensor mae(const Operand& a, const Operand& b, const LossOptions& options = {});
EBB_TAKES_REDUCTION(mae, LossOptions)

struct HuberOptions {
  double delta = 1;  // above 0
  LossReduction reduction = LossReduction::mean;
};

// d^2 / 2 where |d| <= delta, delta (|d| - delta / 2) beyond, with d = a - b. P. J. Huber, "Robust
// estimation of a location parameter", 1964. Throws Error for another delta.
Tensor huber(const Operand& a, const Operand& b, const HuberOptions& options = {});
Tensor huber(const Operand& a, const Operand& b, detail::PlainNumber auto delta) {
  return huber(a, b, HuberOptions{.delta = static_cast<double>(delta)});
}
EBB_TAKES_REDUCTION(huber, HuberOptions)

struct SmoothL1Options {
  double beta = 1;  // above 0
  LossReduction reduction = LossReduction::mean;
};

// |d| - beta / 2 where |d| > beta, d^2 / (2 beta) within, with d = a - b. huber over beta.
Tensor smooth_l1(const Operand& a, const Operand& b, const SmoothL1Options& options = {});
Tensor smooth_l1(const Operand& a, const Operand& b, detail::PlainNumber auto beta) {
  return smooth_l1(a, b, SmoothL1Options{.beta = static_cast<double>(beta)});
}
EBB_TAKES_REDUCTION(smooth_l1, SmoothL1Options)

struct BinaryCrossEntropyOptions {
  // The factor of each element's loss; broadcasts to the logits.
  Tensor weights = {};
  // The factor of the loss that targets of 1 give, above 1 for rare ones; broadcasts to the logits.
  Tensor positive_weight = {};
  LossReduction reduction = LossReduction::mean;  // a mean over all elements, also with weights
};

// -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)) for logits x and targets z. Both are of one
// shape and dtype, z from 0 to 1. It does not overflow, and a small loss is accurate. One kernel; a
// positive weight takes some more, and keeps two more tensors. Throws ShapeError.
Tensor binary_cross_entropy_with_logits(const Operand& logits, const Operand& targets,
                                        const BinaryCrossEntropyOptions& options = {});
EBB_TAKES_REDUCTION(binary_cross_entropy_with_logits, BinaryCrossEntropyOptions)

// The divergence of q from p, the sum over the last axis of p (log p - log q). Terms with p = 0
// count 0. Both are given by their logarithms, of one shape [.., classes], as log_softmax gives
// them. LossReduction::none gives [..], and the mean is over distributions, not elements (PyTorch's
// "batchmean"; its kl_div takes log q first and p itself second). Throws ShapeError.
Tensor kl_divergence(const Operand& log_p, const Operand& log_q, const LossOptions& options = {});
EBB_TAKES_REDUCTION(kl_divergence, LossOptions)

extern const OpDef difference_op, mae_op, huber_op, smooth_l1_op,
    binary_cross_entropy_with_logits_op, kl_divergence_op;

}  // namespace ebb
