// Contents of cuBLASLt's opaque structures, and the computation behind cublasLtMatmul. Covers only
// the calls that ebb makes: matrices are column-major, alpha and beta lie on the host, and c is d.
#pragma once
#include <cublasLt.h>

#include <cstring>

#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

struct Layout {
  std::uint32_t type = CUDA_R_32F;
  std::int32_t batches = 1;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0, batch_stride = 0;
};

struct Operation {
  std::int32_t compute = CUBLAS_COMPUTE_32F, scale = CUDA_R_32F;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
};

struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // of a, b, c and d
};

// The heuristic's choice, and the problem for which it was made.
struct Algorithm {
  std::uint32_t mark = 0;
  std::uint32_t epilogue = 0;
  std::uint64_t m = 0, n = 0, k = 0, workspace_bytes = 0;
  std::uint32_t alignment[4] = {};
  std::uint32_t vector_alignment = 1;
  std::uint16_t split = 1;
  bool rounds_parts = false;  // parts of a split sum have the type of the result
};
inline constexpr std::uint32_t kAlgorithmMark = 0xEBBA1601;

template <class Held, class Opaque>
Held read(const Opaque* opaque) {
  static_assert(sizeof(Held) <= sizeof(Opaque));
  Held held;
  std::memcpy(static_cast<void*>(&held), opaque, sizeof(held));
  return held;
}
template <class Held, class Opaque>
void write(Opaque* opaque, const Held& held) {
  static_assert(sizeof(Held) <= sizeof(Opaque));
  std::memcpy(opaque, &held, sizeof(held));
}

struct Problem {
  Operation operation;
  Layout a, b, d;
  std::uint64_t m = 0, n = 0, k = 0;
};

inline bool is_half(std::uint32_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }
inline std::size_t item_bytes(std::uint32_t type) {
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
