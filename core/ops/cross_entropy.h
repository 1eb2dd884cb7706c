#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/ops/loss_reduction.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

struct CrossEntropyOptions {
  // The weight of each class, [classes], of the scores' dtype.
  Tensor weights = {};
  // The part of each target that is spread evenly over all classes, in [0, 1].
  double label_smoothing = 0;
  // Rows of this label count nothing; it may be out of range. Not for probabilities.
  std::optional<std::int64_t> ignored_label = {};
  LossReduction reduction = LossReduction::mean;
  // A label out of range is an Error on a GPU as well, where the loss is NaN otherwise: the host
  // waits for the labels and reads them, and a program is not captured.
  bool check_labels = false;
};

// The cross entropy of softmax(scores) and the labels: of scores [.., classes] and labels [..]
// (i32, i64) logsumexp(scores) - scores[label] in each row, of probabilities [.., classes] of the
// scores' dtype the sum of them times that. PyTorch's cross_entropy, with the classes last:
// weights, smoothing and rows that are ignored mean what they do there. The mean is one over rows,
// for labels weighted by the weights of their classes, without those ignored: NaN where none is
// left. One kernel, which keeps scores and labels; with weights or an ignored label the mean takes
// a number of 4 bytes (f64: 8) for each row meanwhile. No gradient flows to weights. Throws
// ShapeError, Error for options that make no sense and, on the CPU, for the first label out of
// range; in a run that is fed with it nothing has happened then.
Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels,
                             const CrossEntropyOptions& options = {});
Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels,
                             std::same_as<LossReduction> auto reduction) {
  return softmax_cross_entropy(scores, labels, CrossEntropyOptions{.reduction = reduction});
}

extern const OpDef softmax_cross_entropy_op, softmax_cross_entropy_backward_op, label_weights_op;

}  // namespace ebb
