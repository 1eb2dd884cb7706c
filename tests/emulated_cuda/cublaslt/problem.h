// What a call of cublasLtMatmul is about, and the doing of it.
#pragma once
#include "ebb/tests/emulated_cuda/cublaslt/descriptors.h"
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

struct Problem {
  Operation operation;
  Layout a, b, c, d;
  std::uint64_t m = 0, n = 0, k = 0;
};

inline bool is_half(std::uint32_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }
inline std::size_t item_bytes(std::uint32_t type) {
  return type == CUDA_R_64F ? 8 : is_half(type) ? 2 : 4;
}
// What an address promises of those that follow it, up to 256 bytes.
inline std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

inline bool has(const Operation& operation, std::uint32_t epilogue) {
  return (operation.epilogue & epilogue) != 0;
}
inline bool has_aux(const Operation& operation) { return has(operation, 128); }
inline bool is_gradient(const Operation& operation) { return has(operation, 8); }
// Where bias gradients are summed: over columns of d, or over the inner dimension.
inline bool sums_bias(const Operation& operation) {
  return has(operation, 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
}
inline bool has_vector(const Operation& operation) {
  return has(operation, CUBLASLT_EPILOGUE_BIAS) || sums_bias(operation);
}

// Makes the checks that the library makes of its descriptors.
cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d, Problem& problem);

struct Operands {
  const void *a, *b, *c;
  void *d, *workspace;
  std::size_t workspace_bytes;
  double alpha, beta;
};

Outcome run_product(const Problem& problem, const Algorithm& chosen, const Operands& operands);

}  // namespace ebb::emulated
