#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "ebb/allocator/profile.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/runtime/libraries.h"
#include "ebb/kernels/cuda/runtime/stream.h"

#if EBB_HAS_CUBLASLT

// cuBLASLt's matrices are column-major, so a row-major matrix of ebb is its transpose there. It is
// asked for c^T = op(b)^T op(a)^T, with b as its first factor.
namespace ebb::cuda {
namespace {

// Type of matrices, biases and column sums.
cudaDataType_t data_type(DType dtype) noexcept {
  return dtype == DType::f64    ? CUDA_R_64F
         : dtype == DType::f16  ? CUDA_R_16F
         : dtype == DType::bf16 ? CUDA_R_16BF
                                : CUDA_R_32F;
}
// Type of the factors alpha and beta.
cudaDataType_t scale_type(DType dtype) noexcept {
  return dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
}
cublasComputeType_t compute_type(DType dtype, int compute_capability) noexcept {
  if (dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  if (is_half(dtype)) return CUBLAS_COMPUTE_32F;
  const bool in_tf32 = is_tf32_allowed() && compute_capability >= 80;
  return in_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// In the order of Epilogue.
constexpr cublasLtEpilogue_t kEpilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                             CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS,
                                             CUBLASLT_EPILOGUE_BGRADA};

const CublasLt& library() noexcept { return *cublas_lt(); }

cublasLtMatrixLayout_t make_layout(DType dtype, std::int64_t rows, std::int64_t columns,
                                   std::int64_t stride) noexcept {
  cublasLtMatrixLayout_t layout = nullptr;
  library().cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), stride);
  return layout;
}

bool set_batch(cublasLtMatrixLayout_t layout, std::int64_t count, std::int64_t next) noexcept {
  if (layout == nullptr || count > std::numeric_limits<std::int32_t>::max()) return false;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    return library().cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  };
  return set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(count)) &&
         set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, next);
}

template <class T>
bool set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
         const T& value) noexcept {
  return library().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)) ==
         CUBLAS_STATUS_SUCCESS;
}

struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t preference) const noexcept {
    library().cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference>;

// Constraints for the heuristic, beside the shapes; null where the library does not take them.
Preference preference_of(DType dtype, std::size_t workspace_limit, std::size_t alignment) noexcept {
  cublasLtMatmulPreference_t made = nullptr;
  bool ok = library().cublasLtMatmulPreferenceCreate(&made) == CUBLAS_STATUS_SUCCESS;
  Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    ok = ok && library().cublasLtMatmulPreferenceSetAttribute(
                   made, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit});
  // With 16 bits, parts of a split sum stay f32 until they are added up. Other schemes would round
  // each part.
  if (is_half(dtype))
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(matrix, static_cast<std::uint32_t>(alignment));
  return ok ? std::move(preference) : nullptr;
}

// Whether the library has refused an algorithm for its arguments, before it launched anything.
// Equal arguments are refused again, so the next algorithm is the choice of every run.
bool is_refusal(cublasStatus_t status) noexcept {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH;
}

// A product described to the library, and the algorithms that its heuristic offers, best first.
class CublasLtProduct final : public LibraryProduct {
 public:
  CublasLtProduct(const ProductShape& shape, std::size_t alignment, std::size_t limit,
                  cublasComputeType_t compute) noexcept
      : dtype_(shape.dtype), alignment_(alignment), limit_(limit) {
    const auto layout = [&](bool transposed, std::int64_t rows, std::int64_t columns,
                            std::int64_t stride) {
      if (transposed) std::swap(rows, columns);
      return make_layout(shape.dtype, columns, rows, stride);
    };
    a_ = layout(shape.transpose_a, shape.m, shape.k, shape.a_stride);
    b_ = layout(shape.transpose_b, shape.k, shape.n, shape.b_stride);
    c_ = layout(false, shape.m, shape.n, shape.c_stride);
    const bool is_batch = shape.batch == 1 || (set_batch(a_, shape.batch, shape.a_next) &&
                                               set_batch(b_, shape.batch, shape.b_next) &&
                                               set_batch(c_, shape.batch, shape.c_next));
    const auto transposition = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    is_described_ =
        is_batch && a_ != nullptr && b_ != nullptr && c_ != nullptr &&
        library().cublasLtMatmulDescCreate(&operation_, compute, scale_type(shape.dtype)) ==
            CUBLAS_STATUS_SUCCESS &&
        set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, transposition(shape.transpose_b)) &&
        set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, transposition(shape.transpose_a));
  }
  ~CublasLtProduct() override {
    if (operation_ != nullptr) library().cublasLtMatmulDescDestroy(operation_);
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
      if (layout != nullptr) library().cublasLtMatrixLayoutDestroy(layout);
  }

  // Asks for an algorithm with the epilogue. Returns whether there is one.
  bool choose(cublasLtHandle_t handle, Epilogue epilogue) noexcept {
    if (!is_described_ || !set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE,
                               kEpilogues[static_cast<std::size_t>(epilogue)]))
      return false;
    epilogue_ = epilogue;
    // The heuristic refuses epilogues without an address. It does not read the memory there, but
    // takes the address's alignment as a promise for all later addresses.
    if (takes_vector() && !set_vector(reinterpret_cast<void*>(kProductAlignment + alignment_)))
      return false;
    const Preference preference = preference_of(dtype_, limit_, alignment_);
    int count = 0;
    if (!preference || library().cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_, c_,
                                                                preference.get(), kMost, found_,
                                                                &count) != CUBLAS_STATUS_SUCCESS)
      return false;
    const auto end = std::remove_if(found_, found_ + count, [&](const auto& found) {
      return found.state != CUBLAS_STATUS_SUCCESS || found.workspaceSize > limit_;
    });
    count_ = static_cast<int>(end - found_);
    return count_ > 0;
  }

  Choice choice() const noexcept override {
    const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
      std::int32_t number = 0;
      library().cublasLtMatmulAlgoConfigGetAttribute(&found_[0].algo, attribute, &number,
                                                     sizeof(number), nullptr);
      return number;
    };
    return {get(CUBLASLT_ALGO_CONFIG_ID), get(CUBLASLT_ALGO_CONFIG_TILE_ID),
            get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM), found_[0].workspaceSize};
  }
  bool has_epilogue() const noexcept override { return epilogue_ != Epilogue::none; }
  std::size_t bytes() const noexcept override {
    return sizeof(*this) + sizeof(cublasLtMatmulDescOpaque_t) +
           3 * sizeof(cublasLtMatrixLayoutOpaque_t);
  }

  Status run(Stream* stream, const ProductOperands& operands) noexcept override {
    // A capture copies their values, as it does the addresses.
    static constexpr struct {
      float f32[2] = {0, 1};
      double f64[2] = {0, 1};
    } kFactors;
    const auto factor = [&](int value) -> const void* {
      return dtype_ == DType::f64 ? static_cast<const void*>(&kFactors.f64[value])
                                  : &kFactors.f32[value];
    };
    if (takes_vector()) set_vector(operands.vector);
    const std::uintptr_t past =
        reinterpret_cast<std::uintptr_t>(operands.workspace) % kProductAlignment;
    std::byte* const workspace =
        static_cast<std::byte*>(operands.workspace) + (past == 0 ? 0 : kProductAlignment - past);
    const char* problem = nullptr;
    const cublasLtHandle_t handle = cuda_stream(stream).cublas_lt(problem);
    if (handle == nullptr) return Status::refuse(problem);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < count_ && is_refusal(status); ++i) {
      const std::size_t bytes = found_[i].workspaceSize;
      status = library().cublasLtMatmul(
          handle, operation_, factor(1), operands.b, b_, operands.a, a_,
          factor(operands.accumulate ? 1 : 0), operands.c, c_, operands.c, c_, &found_[i].algo,
          bytes == 0 ? nullptr : workspace, bytes, cuda_stream(stream).get());
      if (status == CUBLAS_STATUS_SUCCESS) return {};
      static_cast<void>(cudaGetLastError());
    }
    return {"cuBLASLt could not multiply", static_cast<int>(status), is_refusal(status)};
  }

 private:
  bool takes_vector() const noexcept {
    return epilogue_ != Epilogue::none && epilogue_ != Epilogue::relu;
  }
  bool set_vector(void* vector) noexcept {
    return set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  }

  const DType dtype_;
  const std::size_t alignment_, limit_;
  Epilogue epilogue_ = Epilogue::none;
  bool is_described_ = false;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  static constexpr int kMost = 4;
  cublasLtMatmulHeuristicResult_t found_[kMost] = {};
  int count_ = 0;
};

}  // namespace

std::unique_ptr<LibraryProduct> find_product(const ProductShape& shape, Epilogue epilogue,
                                             const MemoryQuery& query, std::size_t alignment) {
  const char* problem = nullptr;
  const cublasLtHandle_t handle = cuda_stream(query.stream).cublas_lt(problem);
  if (handle == nullptr) {
    warn_of_slow_products(problem);
    return nullptr;
  }
  auto product = std::make_unique<CublasLtProduct>(
      shape, alignment, product_limit(shape, query.profile),
      compute_type(shape.dtype, query.profile->compute_capability));
  if (product->choose(handle, epilogue)) return product;
  // Not every dtype has every epilogue.
  if (epilogue != Epilogue::none && product->choose(handle, Epilogue::none)) return product;
  return nullptr;
}

}  // namespace ebb::cuda

#else

namespace ebb::cuda {

std::unique_ptr<LibraryProduct> find_product(const ProductShape&, Epilogue, const MemoryQuery&,
                                             std::size_t) {
  warn_of_slow_products("ebb was built without the headers of cuBLASLt");
  return nullptr;
}

}  // namespace ebb::cuda

#endif
