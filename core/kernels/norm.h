#pragma once
#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Normalisation: y = (x - mean) / sqrt(variance + epsilon) * scale + shift. Mean and variance are
// over some elements of x.
struct NormAttributes {
  enum Kind : std::int32_t {
    layer,  // over the last `number` axes
    rms,    // the same without the mean, which counts as 0
    group,  // over each of `number` groups of channels (axis 1) and all axes after
    batch,  // over all but the channels, axis `number`
  };
  double epsilon = 0;
  double momentum = 0;  // batch, in training: the batch's share of the running values
  Kind kind = layer;
  std::int32_t number = 1;
  std::uint8_t has_scale = 0;  // and, but for rms, has_shift
  std::uint8_t has_shift = 0;
  std::uint8_t reserved[6] = {};

  bool has_mean() const noexcept { return kind != rms; }
};

// x seen as [batch, channels, inner]; scale and shift have a number for each channel. A mean and
// variance is over one batch row of a group of channels, or over one channel.
struct NormView {
  std::int64_t batch = 1, channels = 1, inner = 1;
  std::int64_t groups = 1;  // 0: one for each channel, over the batch

  NormView() = default;
  NormView(const Shape& x, const NormAttributes& attributes) noexcept {
    const int rank = x.rank(), number = attributes.number;
    int first = 1, last = 1;  // the axes of the channels
    if (attributes.kind == NormAttributes::batch) {
      first = last = number;
      groups = 0;
    } else if (attributes.kind == NormAttributes::group) {
      groups = number;
    } else {
      first = rank - number;
      last = rank - 1;
    }
    for (int axis = 0; axis < rank; ++axis)
      (axis < first ? batch : axis > last ? inner : channels) *= x.dim(axis);
  }

  // The number of means, and the number of elements under each.
  std::int64_t statistics() const noexcept { return groups == 0 ? channels : batch * groups; }
  std::int64_t per_group() const noexcept { return groups == 0 ? 1 : channels / groups; }
  std::int64_t terms() const noexcept { return groups == 0 ? batch * inner : per_group() * inner; }
};

// Enters a batch's mean or variance into the running one, which an empty batch leaves as it was.
template <class T>
struct RunningValues {
  const T* before;
  T* after;
  T kept, share;
  bool has_batch;

  RunningValues(const Buffer& from, const Buffer& to, double momentum, double terms) noexcept
      : before(from.as<const T>()),
        after(to.as<T>()),
        kept(static_cast<T>(1 - momentum)),
        share(static_cast<T>(momentum)),
        has_batch(terms > 0) {}
  EBB_HOST_DEVICE void enter(std::int64_t channel, T of_batch) const noexcept {
    after[channel] = has_batch ? before[channel] * kept + of_batch * share : before[channel];
  }
};

// Inputs of the forward kernels: x (floating), then scale and shift [channels] of its dtype, if the
// attributes say so; y may be x. Means and 1 / sqrt(variance + epsilon) are f64 for f64, else f32.
// Inputs of the backward kernels: dy, x, 1 / sqrt(..), the mean (for rms ignored), the scale if
// there is one. Outputs dx, d_scale, d_shift, except unwanted ones. dx may be dy or x.
namespace cpu {
// Kinds layer, rms, group. Outputs y, 1 / sqrt(..) and, but for rms, the mean.
Status norm(const KernelContext&);
Status norm_backward(const KernelContext&);
// Kind batch. Inputs 3 and 4 are the running mean and variance. Outputs y, 1 / sqrt(..), the mean,
// and the new running values, whose variance is the sum of squares over one element less.
Status batch_norm(const KernelContext&);
Status batch_norm_backward(const KernelContext&);
// Inputs x, mean, variance (f64 for f64, else f32), scale, shift; output y.
Status batch_norm_inference(const KernelContext&);
MemoryFunction norm_backward_memory, batch_norm_memory, batch_norm_backward_memory,
    batch_norm_inference_memory;
}  // namespace cpu
}  // namespace ebb
