// The computation behind cublasLtMatmul. Covers only the calls that ebb makes: matrices are
// column-major, alpha and beta lie on the host, and c is d.
#pragma once
#include <cublasLt.h>

#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

using Layout = cublasLtMatrixLayoutOpaque_t;
using Operation = cublasLtMatmulDescOpaque_t;
using Preference = cublasLtMatmulPreferenceOpaque_t;
using Algorithm = cublasLtMatmulAlgo_t;
inline constexpr std::uint32_t kAlgorithmMark = 0xEBBA1601;

struct Problem {
  Operation operation;
  Layout a, b, d;
  std::uint64_t m = 0, n = 0, k = 0;
};

inline bool is_half(cudaDataType_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }
inline std::size_t item_bytes(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : is_half(type) ? 2 : 4;
}
// Alignment of an address in bytes, at most 256.
inline std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

inline bool has(const Operation& operation, std::uint32_t epilogue) {
  return (operation.epilogue & epilogue) != 0;
}
// Whether the epilogue has a vector: a bias to add, or sums of a over the inner dimension to write.
inline bool has_vector(const Operation& operation) {
  return has(operation, CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA);
}

// Makes the checks that the library makes of its descriptors, and fills in `problem`.
cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d, Problem& problem);

struct Operands {
  const void *a, *b;
  void *d, *workspace;
  std::size_t workspace_bytes;
  double alpha, beta;
};

Outcome run_product(const Problem& problem, const Algorithm& chosen, const Operands& operands);

}  // namespace ebb::emulated
