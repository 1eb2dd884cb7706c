#include "ebb/core/kernels/custom.h"

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/chunks.h"

namespace ebb::cpu {
namespace {

using Walk = BroadcastWalk<kMostPointwiseInputs>;

// Missing inputs count as single elements, which nobody reads.
Walk walk_of(const KernelContext& context) noexcept {
  static const Shape one;
  const auto shape = [&](std::size_t k) -> const Shape& {
    return k < context.inputs.size() ? context.inputs[k].spec.shape : one;
  };
  static_assert(kMostPointwiseInputs == 4);
  return Walk(context.outputs[0].spec.shape, shape(0), shape(1), shape(2), shape(3));
}

// Floats and doubles are read and written in place; 16 bits, and an element that is repeated along
// a row, go through chunks.
template <class T>
void run(const KernelContext& context, PointwiseLoop<Computed<T>> loop) {
  using C = Computed<T>;
  const std::size_t inputs = context.inputs.size();
  const Walk walk = walk_of(context);
  bool in_place = !kIsHalf<T>;
  for (std::size_t k = 0; k < inputs; ++k) in_place = in_place && !walk.one(static_cast<int>(k));
  T* const out = context.outputs[0].as<T>();
  for_rows(walk, [&](const std::int64_t* from, std::int64_t first, std::int64_t count) {
    const C* in[kMostPointwiseInputs] = {};
    if constexpr (!kIsHalf<T>) {
      if (in_place) {
        for (std::size_t k = 0; k < inputs; ++k) in[k] = context.inputs[k].as<const C>() + from[k];
        return loop(*context.attributes, in, out + first, count);
      }
    }
    const auto chunks_of = [&](std::size_t k) {
      if (k >= inputs) return Chunks<T>(nullptr, false, 0);
      return Chunks<T>(context.inputs[k].as<const T>() + from[k], walk.one(static_cast<int>(k)),
                       count);
    };
    Chunks<T> chunks[] = {chunks_of(0), chunks_of(1), chunks_of(2), chunks_of(3)};
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t n = std::min(kChunk, count - i);
      for (std::size_t k = 0; k < inputs; ++k) in[k] = chunks[k].at(i, n);
      if constexpr (kIsHalf<T>) {
        C results[kChunk];
        loop(*context.attributes, in, results, n);
        convert_run(results, out + first + i, n);
      } else {
        loop(*context.attributes, in, out + first + i, n);
      }
    }
  });
}

}  // namespace

Status pointwise(const KernelContext& context, const PointwiseLoops& loops) {
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>)
      run<T>(context, loops.in_double);
    else
      run<T>(context, loops.in_float);
  });
}

}  // namespace ebb::cpu
