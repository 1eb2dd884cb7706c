#include "ebb/kernels/cuda/runtime/device.h"

namespace ebb::cuda {
namespace {

__global__ void do_nothing() {}

}  // namespace

cudaError_t probe() noexcept {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(do_nothing));
}

}  // namespace ebb::cuda
