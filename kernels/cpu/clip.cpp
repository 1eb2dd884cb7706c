#include "ebb/optim/kernels/clip.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {
namespace {

// Sums side by side, so that they fill vectors.
template <class T>
double square_sum(const T* x, std::int64_t count) noexcept {
  constexpr std::int64_t kLanes = 16;
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t j = 0; j < kLanes; ++j) {
      const double value = static_cast<double>(x[i + j]);
      sums[j] += value * value;
    }
  for (std::int64_t j = 0; i + j < count; ++j) {
    const double value = static_cast<double>(x[i + j]);
    sums[j] += value * value;
  }
  double sum = 0;
  for (const double of_lane : sums) sum += of_lane;
  return sum;
}

double square_sum(const Buffer& x, std::int64_t first, std::int64_t count) noexcept {
  double sum = 0;
  static_cast<void>(for_floating(x.spec.dtype, [&]<class T>(T) {
    const T* from = x.as<const T>() + first;
    if constexpr (kIsHalf<T>) {
      float widened[kChunk];
      for (std::int64_t i = 0; i < count; i += kChunk) {
        const std::int64_t here = std::min(kChunk, count - i);
        convert_run(from + i, widened, here);
        sum += square_sum(widened, here);
      }
    } else {
      sum = square_sum(from, count);
    }
  }));
  return sum;
}

}  // namespace

Status clip_scale(const KernelContext& context) {
  const auto& attributes = context.attribute<optim::ClipAttributes>();
  const bool gated = attributes.gated != 0;
  if (gated && !*context.inputs[1].as<const bool>()) return {};
  const std::span<const Buffer> gradients = context.inputs.subspan(gated ? 3 : 1);
  double* const work = context.inputs[0].as<double>();
  // Pieces of all gradients are numbered in order; sum k of `work` takes every so many-th, from the
  // k-th on.
  std::int64_t pieces = 0;
  for (const Buffer& gradient : gradients) pieces += divide_up(gradient.elements(), kPieceElements);
  const std::int64_t sums = std::min(pieces, optim::kClipNumbers);
  for_items(sums, 1, [&](std::int64_t sum) {
    work[sum] = 0;
    std::int64_t next = sum,
                 first = 0;  // this sum's next piece; the gradient's first
    for (const Buffer& gradient : gradients) {
      const std::int64_t elements = gradient.elements();
      const std::int64_t behind = first + divide_up(elements, kPieceElements);
      for (; next < behind; next += sums) {
        const std::int64_t at = (next - first) * kPieceElements;
        work[sum] += square_sum(gradient, at, std::min(kPieceElements, elements - at));
      }
      first = behind;
    }
  });
  double total = 0;
  for (std::int64_t i = 0; i < sums; ++i) total += work[i];
  const double count = gated ? static_cast<double>(*context.inputs[2].as<const std::int64_t>()) : 1;
  const double norm = std::sqrt(total) / count;
  std::fill_n(work, optim::kClipNumbers, 0.0);
  work[0] = norm <= attributes.limit ? 1 : attributes.limit / norm;
  work[1] = norm;
  return {};
}

}  // namespace ebb::cpu
