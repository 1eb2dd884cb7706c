#include "ebb/kernels/cuda/product.h"

#include <cstdint>
#include <utility>

#include "ebb/kernels/cuda/gemm_own.h"
#include "ebb/kernels/cuda/runtime/libraries.h"
#include "ebb/kernels/cuda/runtime/stream.h"

// cuBLASLt's matrices are column-major: what is row-major for ebb is the transpose for it, so that
// it is asked for c^T = op(b)^T op(a)^T, its first factor being b.
namespace ebb::cuda {
namespace {

cudaDataType_t data_type(DType dtype) noexcept {
  return dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
}
// f32 is computed in f32, never in TF32.
cublasComputeType_t compute_type(DType dtype) noexcept {
  return dtype == DType::f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t library_epilogue(Epilogue epilogue) noexcept {
  switch (epilogue) {
    case Epilogue::none:
      break;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::bias_relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::column_sums:
      return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

const CublasLt& library() noexcept { return *cublas_lt(); }

cublasLtMatrixLayout_t make_layout(DType dtype, std::int64_t rows, std::int64_t columns,
                                   std::int64_t stride) noexcept {
  cublasLtMatrixLayout_t layout = nullptr;
  library().cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), stride);
  return layout;
}

template <class T>
bool set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
         const T& value) noexcept {
  return library().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)) ==
         CUBLAS_STATUS_SUCCESS;
}

// What the heuristic is told beside the shapes.
class Preference {
 public:
  Preference(std::size_t workspace_limit, std::size_t alignment) noexcept {
    if (library().cublasLtMatmulPreferenceCreate(&preference_) != CUBLAS_STATUS_SUCCESS) return;
    ok_ = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit});
    for (const auto matrix :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      ok_ = set(matrix, static_cast<std::uint32_t>(alignment)) && ok_;
  }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() {
    if (preference_ != nullptr) library().cublasLtMatmulPreferenceDestroy(preference_);
  }
  cublasLtMatmulPreference_t get() const noexcept { return ok_ ? preference_ : nullptr; }

 private:
  template <class T>
  bool set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) noexcept {
    return library().cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value,
                                                          sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  }

  cublasLtMatmulPreference_t preference_ = nullptr;
  bool ok_ = false;
};

std::uintptr_t address(const void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

Product::Product(const ProductShape& shape, Epilogue epilogue, const MemoryQuery& query,
                 std::size_t alignment)
    : shape_(shape), alignment_(alignment) {
  if (shape.m == 0 || shape.n == 0 || shape.k == 0 || cublas_lt() == nullptr) return;
  const cublasLtHandle_t handle = static_cast<CudaStream*>(query.stream)->cublas_lt();
  if (handle == nullptr) return;
  const auto layout = [&](bool transposed, std::int64_t rows, std::int64_t columns,
                          std::int64_t stride) {
    if (transposed) std::swap(rows, columns);
    return make_layout(shape.dtype, columns, rows, stride);
  };
  a_ = layout(shape.transpose_a, shape.m, shape.k, shape.a_stride);
  b_ = layout(shape.transpose_b, shape.k, shape.n, shape.b_stride);
  c_ = layout(false, shape.m, shape.n, shape.c_stride);
  const std::size_t limit = product_limit(shape, query.profile);
  fuses_ = epilogue != Epilogue::none && choose(handle, epilogue, limit);
  // Not every dtype has every epilogue.
  if (!fuses_) choose(handle, Epilogue::none, limit);
}

// Makes operation_ and algorithm_, or leaves operation_ null.
bool Product::choose(cublasLtHandle_t handle, Epilogue epilogue, std::size_t limit) {
  if (a_ == nullptr || b_ == nullptr || c_ == nullptr) return false;
  if (library().cublasLtMatmulDescCreate(&operation_, compute_type(shape_.dtype),
                                         data_type(shape_.dtype)) != CUBLAS_STATUS_SUCCESS) {
    operation_ = nullptr;
    return false;
  }
  const auto transposition = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  bool is_set = set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, transposition(shape_.transpose_b)) &&
                set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, transposition(shape_.transpose_a)) &&
                set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(epilogue));
  // The heuristic refuses epilogues that have no address yet; it does not read what is there.
  void* const stand_in = &algorithm_;
  if (epilogue != Epilogue::none && epilogue != Epilogue::relu)
    is_set = is_set && set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, stand_in);

  const Preference preference(limit, alignment_);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  if (is_set && preference.get() != nullptr &&
      library().cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_, c_, preference.get(),
                                               1, &found, &count) == CUBLAS_STATUS_SUCCESS &&
      count > 0 && found.state == CUBLAS_STATUS_SUCCESS && found.workspaceSize <= limit) {
    algorithm_ = found.algo;
    workspace_bytes_ = found.workspaceSize;
    return true;
  }
  library().cublasLtMatmulDescDestroy(operation_);
  operation_ = nullptr;
  return false;
}

Product::Product(Product&& other) noexcept
    : shape_(other.shape_),
      alignment_(other.alignment_),
      workspace_bytes_(other.workspace_bytes_),
      fuses_(other.fuses_),
      operation_(std::exchange(other.operation_, nullptr)),
      a_(std::exchange(other.a_, nullptr)),
      b_(std::exchange(other.b_, nullptr)),
      c_(std::exchange(other.c_, nullptr)),
      algorithm_(other.algorithm_) {}

Product::~Product() {
  if (operation_ != nullptr) library().cublasLtMatmulDescDestroy(operation_);
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout != nullptr) library().cublasLtMatrixLayoutDestroy(layout);
}

bool Product::uses_library(const ProductOperands& operands) const noexcept {
  if (operation_ == nullptr) return false;
  const std::uintptr_t together =
      address(operands.a) | address(operands.b) | address(operands.c) | address(operands.vector);
  return together % alignment_ == 0;
}

Status Product::run(Stream* stream, const ProductOperands& operands) const noexcept {
  auto* const on = static_cast<CudaStream*>(stream);
  if (!uses_library(operands))
    return multiply_own(on->get(), shape_, operands.a, operands.b, operands.c, operands.accumulate);
  if (operands.vector != nullptr && fuses_)
    set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.vector);
  const std::uintptr_t past = address(operands.workspace) % kProductAlignment;
  std::byte* const workspace =
      static_cast<std::byte*>(operands.workspace) + (past == 0 ? 0 : kProductAlignment - past);
  // Factors are of the type that is computed in.
  static constexpr struct {
    float f32[2] = {0, 1};
    double f64[2] = {0, 1};
  } kFactors;
  const auto factor = [&](int value) -> const void* {
    return shape_.dtype == DType::f64 ? static_cast<const void*>(&kFactors.f64[value])
                                      : &kFactors.f32[value];
  };
  const cublasStatus_t status = library().cublasLtMatmul(
      on->cublas_lt(), operation_, factor(1), operands.b, b_, operands.a, a_,
      factor(operands.accumulate ? 1 : 0), operands.c, c_, operands.c, c_, &algorithm_,
      workspace_bytes_ == 0 ? nullptr : workspace, workspace_bytes_, on->get());
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return Status::fail("cuBLASLt could not multiply", static_cast<int>(status));
}

std::size_t PreparedProducts::bytes() const noexcept {
  return sizeof(*this) + products.capacity() * sizeof(Product) +
         products.size() *
             (sizeof(cublasLtMatmulDescOpaque_t) + 3 * sizeof(cublasLtMatrixLayoutOpaque_t));
}

}  // namespace ebb::cuda
