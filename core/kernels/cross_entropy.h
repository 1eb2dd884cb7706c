#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct CrossEntropyAttributes {
  enum Reduction : std::uint8_t { mean, sum, none };
  double smoothing = 0;
  std::int64_t ignored = 0;  // a label, where has_ignored
  Reduction reduction = mean;
  std::uint8_t has_ignored = 0;
  std::uint8_t has_weights = 0;   // there is an input [classes]
  std::uint8_t has_total = 0;     // and a scalar divisor of the sum, f64 for f64, else f32
  std::uint8_t check_labels = 0;  // on a GPU as well
  std::uint8_t reserved[3] = {};

  bool ignores(std::int64_t label) const noexcept { return has_ignored != 0 && label == ignored; }
};

// Inputs in this order: scores [.., classes] (floating); labels [..] (i32, i64) or probabilities of
// the scores' dtype and shape; weights and total if the attributes say so. Let w be the weights or
// 1 and s the smoothing. Let p be the probabilities, or 1 for the label and 0 for other classes. A
// row's loss is
//   sum over c of t[c] (logsumexp(scores) - scores[c]),  t[c] = w[c] ((1 - s) p[c] + s / classes).
// A row of the ignored label has loss 0. Any other label out of range fails on the CPU and gives
// NaN on a GPU.
namespace cpu {
// The losses of all rows [..], or their sum, or their mean: the sum divided by the number of rows
// or the total.
Status softmax_cross_entropy(const KernelContext&);
// Input 2 is dy, of the shape of the loss, before the weights. Output dy (softmax(scores) sum(t) -
// t), of the scores' shape, divided as the mean is.
Status softmax_cross_entropy_backward(const KernelContext&);
// Inputs scores, of which only the shape is read, labels, weights?. Output [..], f64 for f64, else
// f32: the w of each label, 0 for the ignored label.
Status label_weights(const KernelContext&);
MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery&);
}  // namespace cpu

}  // namespace ebb
