#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/ops/arguments.h"

namespace ebb {

// The reduction of the losses of all elements or rows to a result.
enum class LossReduction : std::uint8_t { mean, sum, none };

// Declares that a reduction may stand for a loss's options: mse(a, b, LossReduction::sum).
#define EBB_TAKES_REDUCTION(loss, Options)                                                      \
  Tensor loss(const Operand& a, const Operand& b, std::same_as<LossReduction> auto reduction) { \
    return loss(a, b, Options{.reduction = reduction});                                         \
  }

struct CrossEntropyOptions {
  // The weight of each class, [classes], of the scores' dtype.
  Tensor weights = {};
  // The share of each target that is spread evenly over all classes, in [0, 1].
  double label_smoothing = 0;
  // Rows of this label do not count; it may be out of range. Not for probabilities.
  std::optional<std::int64_t> ignored_label = {};
  LossReduction reduction = LossReduction::mean;
  // Makes a label out of range an Error on a GPU too; otherwise the loss is NaN there. The host
  // waits for the labels and reads them, and a program is not captured.
  bool check_labels = false;
};

// The cross entropy of softmax(scores) and the labels. Scores are [.., classes]. Labels [..] (i32,
// i64) give logsumexp(scores) - scores[label] in each row; probabilities [.., classes] of the
// scores' dtype give the sum of this over classes, weighted by them. PyTorch's cross_entropy, with
// the classes last: weights, smoothing and ignored rows mean the same. The mean is over rows; with
// labels each row counts with the weight of its class, and ignored rows do not: NaN where none is
// left. One kernel, which keeps scores and labels; with weights or an ignored label the mean takes
// 4 bytes (f64: 8) for each row meanwhile. No gradient flows to weights. Throws ShapeError, Error
// for options that make no sense and, on the CPU, for the first label out of range, before a run
// that is fed with it has written anything.
Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels,
                             const CrossEntropyOptions& options = {});
EBB_TAKES_REDUCTION(softmax_cross_entropy, CrossEntropyOptions)

extern const OpDef softmax_cross_entropy_op, softmax_cross_entropy_backward_op, label_weights_op;

}  // namespace ebb
