// The CUDA part's table of functions, for the rest of ebb.
#include "ebb/kernels/cuda/loader/part.h"

#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cuda/runtime/device.h"
#include "ebb/kernels/cuda/runtime/libraries.h"

namespace ebb::cuda {

#define EBB_FUNCTION(name, Result, Argument) Result name(Argument);
#define EBB_INSTANCE(walk, Functor)
#include "ebb/kernels/cuda/loader/kernels.inc"

namespace {

constexpr KernelTable kKernels = {
#define EBB_FUNCTION(name, Result, Argument) .name = name,
#define EBB_INSTANCE(walk, Functor) .walk##_##Functor = walk<functors::Functor>,
#include "ebb/kernels/cuda/loader/kernels.inc"
};

}  // namespace
}  // namespace ebb::cuda

// The library's other symbols are hidden.
extern "C" __attribute__((visibility("default"))) const ebb::cuda::Part* ebb_cuda_part() {
  static const ebb::cuda::Part part = {.stamp = ebb::cuda::part_stamp(),
                                       .look_for_tf32_at = ebb::detail::look_for_tf32_at,
                                       .warn_by = ebb::cuda::warn_by,
                                       .toolkit = ebb::cuda::toolkit,
                                       .open = ebb::cuda::open_device,
                                       .kernels = ebb::cuda::kKernels};
  return &part;
}
