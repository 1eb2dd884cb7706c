#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/order_key.h"

namespace ebb::cuda {
namespace {

template <class T>
struct Extreme {
  // The first of the extremes: its key and its position.
  struct State {
    std::uint64_t key;
    std::int64_t position;
  };
  T* values;                // or
  std::int64_t* positions;  // null: values are wanted
  bool smallest;

  __device__ State none() const { return {0, 0x7FFFFFFFFFFFFFFF}; }
  __device__ void add(State& first, const T (&x)[kRun<T>], int count, std::int64_t i,
                      int step) const {
    for (int k = 0; k < kRun<T>; ++k, i += step) {
      if (k >= count) continue;
      const std::uint64_t key = key_of(x[k], smallest);
      if (key > first.key || first.position > i) first = {key, i};
    }
  }
  __device__ void merge(State& first, const State& other) const {
    if (other.key > first.key || (other.key == first.key && other.position < first.position))
      first = other;
  }
  template <class Folded>
  __device__ void write(const Folded& folded, std::int64_t result, const State& first) const {
    if (positions != nullptr)
      positions[result] = first.position;
    else
      values[result] =
          folded.in[folded.walks.kept.offset(result) + folded.walks.reduced.offset(first.position)];
  }
};

}  // namespace

Status extreme(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const auto& how = context.attribute<ExtremeAttributes>();
  if (out.elements() == 0) return {};
  return for_stored(context.inputs[0].spec.dtype, [&]<class T>(T) {
    return fold_axes<T>(
        context, how.axes,
        Extreme<T>{out.as<T>(), how.position != 0 ? out.as<std::int64_t>() : nullptr,
                   how.smallest != 0});
  });
}

}  // namespace ebb::cuda
