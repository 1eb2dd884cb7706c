#include "ebb/core/kernels/create.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {
namespace {

template <class T>
struct Sequence {
  T* out;
  double start, step, last;
  std::int64_t last_index;  // -1: none

  template <int N>
  __device__ void at(std::int64_t i) const {
    Pack<T, N> values;
    for (int j = 0; j < N; ++j) {
      const double value = std::fma(static_cast<double>(i + j), step, start);
      values[j] = convert<T>(i + j == last_index ? last : value);
    }
    store(out + i, values);
  }
};

// Keeps elements of `in`, or of ones, on, below or above a diagonal, and writes 0 elsewhere. Works
// on words of the elements' size.
template <class W, class Index>
struct Diagonal {
  enum Kept { on, below, above };

  const W* in;  // null: one
  W* out;
  W one;
  Split<Index, 3> split;  // matrix, row, column
  std::int64_t diagonal;
  Kept kept;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto at = split(i);
    const std::int64_t distance = at[2] - at[1] - diagonal;
    const bool keeps = kept == on ? distance == 0 : kept == below ? distance <= 0 : distance >= 0;
    out[i] = !keeps ? W{} : in == nullptr ? one : in[i];
  }
};

Status put(const KernelContext& context, const Buffer* in, std::int64_t diagonal,
           int kept) noexcept {
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const std::int64_t rows = out.spec.shape.dim(-2), columns = out.spec.shape.dim(-1);
  const std::uint64_t one = element_of(out.spec.dtype, 1);
  return for_word(out.spec.dtype, [&]<class W>(W) {
    return with_index(count, [&]<class Index>(Index) {
      using Body = Diagonal<W, Index>;
      Body body{in != nullptr ? in->as<const W>() : nullptr,
                out.as<W>(),
                W{},
                Split<Index, 3>({rows, columns}),
                near_diagonal(diagonal, rows, columns),
                static_cast<typename Body::Kept>(kept)};
      std::memcpy(&body.one, &one, sizeof(W));
      return for_each<1>(stream_of(context), body, count, false);
    });
  });
}

}  // namespace

Status sequence(const KernelContext& context) {
  const auto& told = context.attribute<SequenceAttributes>();
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  const auto run = [&]<class T>(T) {
    constexpr int N = kPack<T>;
    const Sequence<T> body{out.as<T>(), told.start, told.step, told.last,
                           told.has_last != 0 ? count - 1 : -1};
    return for_each<N>(stream_of(context), body, count, takes_packs<N>(body.out));
  };
  return is_floating(out.spec.dtype) ? for_floating(out.spec.dtype, run)
                                     : for_integer(out.spec.dtype, run);
}

Status eye(const KernelContext& context) {
  return put(context, nullptr, context.attribute<EyeAttributes>().diagonal, 0);
}

Status triangular(const KernelContext& context) {
  const auto& told = context.attribute<TriangularAttributes>();
  return put(context, &context.inputs[0], told.diagonal, told.upper != 0 ? 2 : 1);
}

}  // namespace ebb::cuda
