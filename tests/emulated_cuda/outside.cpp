#include "ebb/tests/emulated_cuda/outside.h"

const ebb::emulated::Outside* ebb_emulated_outside() {
  static constexpr ebb::emulated::Outside outside = {
      &threadIdx, &blockIdx, &blockDim, &gridDim, ebb_emulated_launch, cudaGetLastError};
  return &outside;
}
