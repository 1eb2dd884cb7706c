// What cuBLASLt's opaque structures hold.
#pragma once
#include <cublasLt.h>

#include <cstring>

namespace ebb::emulated {

struct Layout {
  std::uint32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0;
  std::int32_t batches = 1;
  std::int64_t batch_stride = 0;
};

struct Operation {
  std::int32_t compute = CUBLAS_COMPUTE_32F, scale = CUDA_R_32F;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int64_t bias_stride = 0;
  void* aux = nullptr;
  std::int64_t aux_ld = 0, aux_stride = 0;
  std::int32_t multiprocessors = 0, aux_type = -1, bias_type = -1;
};

struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t search = CUBLASLT_SEARCH_BEST_FIT, reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // of a, b, c and d
  float waves = 0;
  std::uint64_t implementations = ~std::uint64_t{0};
};

// What the heuristic chose, and for what.
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

}  // namespace ebb::emulated
