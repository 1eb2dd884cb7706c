// A product as cuBLASLt is asked for it.
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/tests/emulated_cuda/self/fixture.h"

namespace ebb::tests {

template <class T>
struct Types;
template <>
struct Types<float> {
  static constexpr cudaDataType kOfData = CUDA_R_32F;
};
template <>
struct Types<Float16> {
  static constexpr cudaDataType kOfData = CUDA_R_16F;
};
template <>
struct Types<BFloat16> {
  static constexpr cudaDataType kOfData = CUDA_R_16BF;
};

// d = a b, column-major, of T, summed in float.
template <class T>
class Product {
 public:
  Product(std::uint64_t m, std::uint64_t n, std::uint64_t k,
          cublasComputeType_t compute = CUBLAS_COMPUTE_32F, cudaDataType scale = CUDA_R_32F) {
    REQUIRE(cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulDescCreate(&desc_, compute, scale) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulPreferenceCreate(&preference_) == CUBLAS_STATUS_SUCCESS);
    const auto layout = [](auto& made, std::uint64_t rows, std::uint64_t columns) {
      REQUIRE(cublasLtMatrixLayoutCreate(&made, Types<T>::kOfData, rows, columns,
                                         static_cast<std::int64_t>(rows)) == CUBLAS_STATUS_SUCCESS);
    };
    layout(a_, m, k);
    layout(b_, k, n);
    layout(d_, m, n);
  }
  ~Product() {
    cublasLtDestroy(handle_);
    cublasLtMatmulDescDestroy(desc_);
    for (auto* layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  template <class V>
  void set(cublasLtMatmulDescAttributes_t attribute, V value) {
    REQUIRE(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)) ==
            CUBLAS_STATUS_SUCCESS);
  }
  template <class V>
  void prefer(cublasLtMatmulPreferenceAttributes_t attribute, V value) {
    REQUIRE(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)) ==
            CUBLAS_STATUS_SUCCESS);
  }
  void set_epilogue(cublasLtEpilogue_t epilogue, void* vector) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  }
  // Of d.
  void set_leading_dimension(std::int64_t rows) {
    REQUIRE(cublasLtMatrixLayoutSetAttribute(d_, CUBLASLT_MATRIX_LAYOUT_LD, &rows, sizeof(rows)) ==
            CUBLAS_STATUS_SUCCESS);
  }
  bool choose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference_, 1, &chosen_,
                                          &found) == CUBLAS_STATUS_SUCCESS &&
           found == 1;
  }
  cublasStatus_t run(const T* x, const T* y, T* to, cudaStream_t stream, void* work = nullptr,
                     std::size_t work_bytes = 0) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, desc_, &one, x, a_, y, b_, &zero, to, d_, to, d_, &chosen_.algo,
                          work, work_bytes, stream);
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
};

}  // namespace ebb::tests
