#pragma once
#include <concepts>
#include <type_traits>

#include "ebb/core/ops/arguments.h"
#include "ebb/core/ops/random.h"

namespace ebb {

// Normalisations: (x - mean) / sqrt(variance + epsilon) * scale + shift, of x's shape and floating
// dtype. Mean and variance (the mean of squared distances from it) are taken over some elements of
// x, in float for f16 and bf16. One kernel forward, which keeps x and two numbers for each mean,
// and one backward. Gradients of any order. Throw ShapeError.

struct LayerNormOptions {
  // layer_norm(x, {2}) does not compile: 2 axes, or as in PyTorch one of size 2?
  struct ByName {
    explicit constexpr ByName() noexcept {}
    template <class T>
    requires std::is_arithmetic_v<T>
    constexpr ByName(T) noexcept {  // NOLINT
      static_assert(!std::is_same_v<T, T>,
                    "what is meant is said by its name: {.axes = 1} is the last axis, {.axes = 2} "
                    "the last two, whose sizes are those of x (PyTorch's normalized_shape)");
    }
  };
  [[no_unique_address]] ByName by_name = ByName();
  int axes = 1;  // how many of the last axes
  double epsilon = 1e-5;
};

// Layer normalisation, over the last axes of each row. scale and shift have the shape of these
// axes; without them 1 and 0. Ba, Kiros and Hinton, "Layer normalization", 2016.
Tensor layer_norm(const Operand& x, const Operand& scale, const Operand& shift,
                  const LayerNormOptions& options = {});
Tensor layer_norm(const Operand& x, const LayerNormOptions& options = {});

// x / sqrt(mean(x^2) + epsilon) * scale, over the last axes. Zhang and Sennrich, "Root mean square
// layer normalization", 2019.
Tensor rms_norm(const Operand& x, const Operand& scale, const LayerNormOptions& options = {});
Tensor rms_norm(const Operand& x, const LayerNormOptions& options = {});

// Group normalisation, over each group of neighbouring channels and all axes after. x is [batch,
// channels, ..], scale and shift are [channels]; the number of channels is a multiple of the
// groups. Wu and He, "Group normalization", 2018. The second derivative needs all sizes but the
// batch known when a graph is built.
struct GroupNormOptions {
  double epsilon = 1e-5;
};
Tensor group_norm(const Operand& x, int groups, const Operand& scale, const Operand& shift,
                  const GroupNormOptions& options = {});
Tensor group_norm(const Operand& x, int groups, const Operand& scale, const Operand& shift,
                  std::floating_point auto epsilon) {
  return group_norm(x, groups, scale, shift,
                    GroupNormOptions{.epsilon = static_cast<double>(epsilon)});
}

struct BatchNormOptions {
  Phase phase = Phase::inference;
  int axis = 1;  // the channels
  double momentum = 0.1;
  double epsilon = 1e-5;
};

// Batch normalisation, over all axes but the channels. x is [batch, channels, ..] or has another
// channel axis; the other operands are [channels]. In training mean and variance are the batch's,
// and the running ones are updated in place to running (1 - momentum) + momentum batch. The
// variance for this update divides by one element less (as in PyTorch; Keras calls 1 - momentum the
// momentum). In a graph reading the result makes this update in the same run; eagerly recompute()
// refuses it, as every update of what it reads. In inference mean and variance are the running
// ones. They are f32 beside f16 and bf16. Ioffe and Szegedy, "Batch normalization", 2015. Throws
// ShapeError in training for one element a channel, which has no variance; an empty batch leaves
// the running ones as they were.
Tensor batch_norm(const Operand& x, const Operand& scale, const Operand& shift,
                  const Tensor& running_mean, const Tensor& running_variance,
                  const BatchNormOptions& options = {});
Tensor batch_norm(const Operand& x, const Operand& scale, const Operand& shift,
                  const Tensor& running_mean, const Tensor& running_variance,
                  std::same_as<Phase> auto phase) {
  return batch_norm(x, scale, shift, running_mean, running_variance,
                    BatchNormOptions{.phase = phase});
}

extern const OpDef layer_norm_op, rms_norm_op, group_norm_op, norm_backward_op, batch_norm_op,
    batch_norm_backward_op, batch_norm_inference_op;

}  // namespace ebb
