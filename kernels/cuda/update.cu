#include "ebb/core/kernels/update.h"

#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cuda/broadcast.h"
#include "ebb/kernels/cuda/stream_memory.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

// A null `ready` means not gated.
__global__ void increment_kernel(std::int64_t* n, std::int64_t value, const bool* ready) {
  if (ready == nullptr || *ready) *n += value;
}

__global__ void add_count_kernel(std::int64_t* n, const std::int64_t* rows) { *n += *rows; }

__global__ void at_least_kernel(const std::int64_t* n, std::int64_t value, bool* out) {
  *out = *n >= value;
}

// If ready: to = from, or zeros where from is null.
template <class W>
struct AssignIf {
  W* to;
  const W* from;
  const bool* ready;

  template <int N>
  __device__ void at(std::int64_t i) const {
    if (!*ready) return;
    store(to + i, from == nullptr ? splat<N>(W{}) : load<N>(from + i));
  }
};

Status assign_if(cudaStream_t stream, const Buffer& to, const void* from,
                 const Buffer& ready) noexcept {
  const std::size_t bytes = to.spec.bytes();
  return with_words(bytes, {to.data, from}, [&]<class W>(W) {
    const AssignIf<W> body{to.as<W>(), static_cast<const W*>(from), ready.as<const bool>()};
    return for_each<1>(stream, body, static_cast<std::int64_t>(bytes / sizeof(W)), true);
  });
}

}  // namespace

Status increment(const KernelContext& context) {
  const auto& attributes = context.attribute<CountAttributes>();
  const bool* ready = attributes.gated != 0 ? context.inputs[1].as<const bool>() : nullptr;
  return launch(stream_of(context), increment_kernel, 1, 1, context.inputs[0].as<std::int64_t>(),
                attributes.value, ready);
}

Status add_count(const KernelContext& context) {
  return launch(stream_of(context), add_count_kernel, 1, 1, context.inputs[0].as<std::int64_t>(),
                context.inputs[1].as<const std::int64_t>());
}

Status at_least(const KernelContext& context) {
  return launch(stream_of(context), at_least_kernel, 1, 1,
                context.inputs[0].as<const std::int64_t>(),
                context.attribute<CountAttributes>().value, context.outputs[0].as<bool>());
}

Status clear_if(const KernelContext& context) {
  return assign_if(stream_of(context), context.inputs[0], nullptr, context.inputs[1]);
}

Status add_assign(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1];
  return for_floating(a.spec.dtype, [&]<class T>(T) {
    return compute_each(functors::Add(), stream_of(context),
                        {Operand<T>{a.as<const T>()}, Operand<T>{b.as<const T>()}}, a.as<T>(),
                        a.elements(), FlatWalk<2>{}, true);
  });
}

Status assign(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1];
  return copy(stream_of(context), a.data, b.data, a.spec.bytes());
}

Status assign_if(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1];
  if (a.data == b.data) return {};
  return assign_if(stream_of(context), a, b.data, context.inputs[2]);
}

}  // namespace ebb::cuda
