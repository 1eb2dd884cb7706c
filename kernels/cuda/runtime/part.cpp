// What the rest of ebb finds here. The kernels are declared by the lists that it knows them by.
#include "ebb/kernels/cuda/host/part.h"

#include "ebb/core/kernels/functors/families.h"
#include "ebb/kernels/cuda/runtime/device.h"
#include "ebb/kernels/cuda/runtime/tf32.h"
#include "ebb/kernels/cuda/runtime/toolkit.h"

namespace ebb::cuda {

#define EBB_KERNEL(name) Status name(const KernelContext& context);
#define EBB_PREPARED(name) \
  EBB_KERNEL(name)         \
  ebb::detail::Ref<Prepared> name##_prepare(const MemoryQuery& query);
#define EBB_MERGED(name) \
  EBB_KERNEL(name)       \
  Status name##_merged(std::span<const Launch> launches);
#include "ebb/kernels/cuda/kernels.inc"
#undef EBB_KERNEL
#undef EBB_PREPARED
#undef EBB_MERGED

template <class F>
Status map(const KernelContext& context);
template <class F>
Status zip(const KernelContext& context);

namespace {

constexpr KernelTable kKernels = {
#define EBB_KERNEL(name) .name = name,
#define EBB_PREPARED(name) .name = name, .name##_prepare = name##_prepare,
#define EBB_MERGED(name) .name = name, .name##_merged = name##_merged,
#include "ebb/kernels/cuda/kernels.inc"
#undef EBB_KERNEL
#undef EBB_PREPARED
#undef EBB_MERGED
#define EBB_UNARY(name, Functor) .map_##Functor = map<functors::Functor>,
#define EBB_BINARY(name, Functor) .zip_##Functor = zip<functors::Functor>,
#define EBB_PAIR(name, Functor) .zip_##Functor = zip<functors::Functor>,
#include "ebb/core/kernels/functors/families.inc"
#undef EBB_UNARY
#undef EBB_BINARY
#undef EBB_PAIR
};

}  // namespace
}  // namespace ebb::cuda

// The library's other symbols are hidden.
extern "C" __attribute__((visibility("default"))) const ebb::cuda::Part* ebb_cuda_part() {
  static const ebb::cuda::Part part = {.stamp = ebb::cuda::part_stamp(),
                                       .look_for_tf32_at = ebb::cuda::look_for_tf32_at,
                                       .toolkit = ebb::cuda::toolkit,
                                       .open = ebb::cuda::open_device,
                                       .kernels = ebb::cuda::kKernels};
  return &part;
}
