#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {
// Input x [..., classes] (floating); out = exp(x) / the sum of exp(x) over the last axis. out may
// be x.
Status softmax(const KernelContext&);
// Inputs scores [n, classes] (floating), labels [n] (i32, i64); output the mean of
// logsumexp(scores[i]) - scores[i][labels[i]], a scalar. A label out of range makes the loss NaN.
Status softmax_cross_entropy(const KernelContext&);
// Inputs scores, labels, dy (scalar); output [n, classes] = dy (softmax(scores) - onehot) / n.
Status softmax_cross_entropy_backward(const KernelContext&);
MemoryNeeds softmax_memory(const MemoryQuery&);
MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery&);
MemoryNeeds softmax_cross_entropy_backward_memory(const MemoryQuery&);
}  // namespace ebb::cpu

// The same, on a GPU.
namespace ebb::cuda {
KernelFunction softmax, softmax_cross_entropy, softmax_cross_entropy_backward;
MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery&);
}  // namespace ebb::cuda
