// Cuts the sums of a normalisation over batch and inner, for its kernels and their memory rules.
#pragma once
#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {

constexpr SumPlan plan_channels(const NormView& view) noexcept {
  return view.inner == 1 ? plan_columns(1, view.batch, view.channels)
                         : plan_columns(view.channels, view.batch * view.inner, 1);
}

// The workspace: `sums` partial sums for each part and channel, and `number` numbers for each
// channel.
template <class A>
struct NormWorkspace {
  double* partial;
  A* numbers;
  std::size_t bytes;

  NormWorkspace(void* base, const NormView& view, int sums, int number) noexcept {
    Carver carver(base);
    partial = carver.take<double>(plan_channels(view).parts * sums * view.channels);
    numbers = carver.take<A>(number * view.channels);
    bytes = carver.bytes();
  }
};

}  // namespace ebb::cuda
