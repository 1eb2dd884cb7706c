// What cuBLASLt and cuDNN take of f16 and bf16, and when they round.
#include <cublasLt.h>
#include <cudnn.h>

#include "ebb/core/base/half.h"
#include "ebb/tests/emulated_cuda/self/fixture.h"

namespace ebb::tests {
namespace {

template <class T>
struct Types;
template <>
struct Types<Float16> {
  static constexpr cudaDataType kOfData = CUDA_R_16F;
};
template <>
struct Types<BFloat16> {
  static constexpr cudaDataType kOfData = CUDA_R_16BF;
};

template <class T>
std::vector<T> numbers(std::size_t count, int step) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(T(static_cast<float>(static_cast<int>(i) * step % 13 - 6) / 4));
  return values;
}

// d = a b, column-major, of T, summed in float.
template <class T>
class Product {
 public:
  Product(std::uint64_t m, std::uint64_t n, std::uint64_t k,
          cublasComputeType_t compute = CUBLAS_COMPUTE_32F, cudaDataType scale = CUDA_R_32F) {
    REQUIRE(cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulDescCreate(&desc_, compute, scale);
    cublasLtMatmulPreferenceCreate(&preference_);
    const auto layout = [](auto& made, std::uint64_t rows, std::uint64_t columns) {
      cublasLtMatrixLayoutCreate(&made, Types<T>::kOfData, rows, columns,
                                 static_cast<std::int64_t>(rows));
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
  bool choose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference_, 1, &chosen_,
                                          &found) == CUBLAS_STATUS_SUCCESS &&
           found == 1;
  }
  cublasStatus_t run(const T* x, const T* y, T* to, void* work, std::size_t work_bytes,
                     cudaStream_t stream) {
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

struct OnCapability {
  explicit OnCapability(int capability) { control().set_capability(capability); }
  ~OnCapability() { control().set_capability(0); }
};

}  // namespace

TEMPLATE_TEST_CASE("Products of 16 bits with a bias are plain sums, rounded once", "", Float16,
                   BFloat16) {
  const FreshDevice fresh;
  const TestStream stream;
  const std::size_t m = 37, n = 11, k = 90;
  const auto x = numbers<TestType>(m * k, 5), y = numbers<TestType>(k * n, 7),
             bias = numbers<TestType>(m + 1, 3);
  const DeviceArray<TestType> a(x), b(y), vector(bias), d(m * n);
  Product<TestType> product(m, n, k);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.get());
  REQUIRE(product.choose());
  REQUIRE(product.run(a.get(), b.get(), d.get(), nullptr, 0, stream) == CUBLAS_STATUS_SUCCESS);
  const auto got = d.read(stream);
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t row = 0; row < m; ++row) {
      auto sum = static_cast<float>(bias[row]);  // exact in float, whatever the order
      for (std::size_t i = 0; i < k; ++i)
        sum += static_cast<float>(x[i * m + row]) * static_cast<float>(y[column * k + i]);
      REQUIRE(got[column * m + row].bits == TestType(sum).bits);
    }
  // The heuristic took the bias for aligned, and the matrices.
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.get() + 1);
  CHECK(product.run(a.get(), b.get(), d.get(), nullptr, 0, stream) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.choose());
  CHECK(product.run(a.get() + 1, b.get(), d.get(), nullptr, 0, stream) ==
        CUBLAS_STATUS_INVALID_VALUE);
}

TEMPLATE_TEST_CASE("Parts of a sum are rounded to 16 bits where a reduction scheme lets them", "",
                   Float16, BFloat16) {
  const FreshDevice fresh;
  const TestStream stream;
  const std::size_t side = 2, k = 16384;
  std::vector<TestType> column(side * k, TestType(1));
  for (std::size_t i = 0; i < column.size(); ++i)
    column[i] = TestType(i % k < 15 ? 2.0f : i % k < k / 2 ? 1.0f : -1.0f);
  const DeviceArray<TestType> a(std::vector<TestType>(side * k, TestType(1))), b(column),
      d(side * side);
  const DeviceArray<char> work(4096);
  for (const bool rounds : {true, false}) {
    Product<TestType> product(side, side, k);
    product.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{4096});
    if (!rounds)
      product.prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                     std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    REQUIRE(product.choose());
    REQUIRE(product.run(a.get(), b.get(), d.get(), work.get(), 4096, stream) ==
            CUBLAS_STATUS_SUCCESS);
    CHECK((static_cast<float>(d.read(stream)[0]) == 15) == !rounds);
  }
}

TEST_CASE("What cuBLASLt does not take of 16 bits, its heuristic refuses") {
  const FreshDevice fresh;
  CHECK(Product<BFloat16>(8, 8, 8).choose());
  CHECK_FALSE(Product<BFloat16>(8, 8, 8, CUBLAS_COMPUTE_32F, CUDA_R_16BF).choose());
  CHECK_FALSE(Product<BFloat16>(8, 8, 8, CUBLAS_COMPUTE_32F_FAST_TF32).choose());
  CHECK_FALSE(Product<Float16>(8, 8, 8, CUBLAS_COMPUTE_64F).choose());
  const DeviceArray<float> bias(8);
  Product<Float16> product(8, 8, 8);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.get());
  CHECK(product.choose());
  product.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{CUDA_R_32F});
  CHECK_FALSE(product.choose());
  const OnCapability turing(75);
  CHECK(Product<Float16>(8, 8, 8).choose());
  CHECK_FALSE(Product<BFloat16>(8, 8, 8).choose());
}

TEST_CASE("cuDNN's LSTMs are of f16 summed in float, and of bf16 since 9.13") {
  const FreshDevice fresh;
  cudnnHandle_t handle = nullptr;
  cudnnDropoutDescriptor_t dropout = nullptr;
  cudnnRNNDescriptor_t rnn = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  cudnnCreateDropoutDescriptor(&dropout);
  cudnnSetDropoutDescriptor(dropout, handle, 0, nullptr, 0, 0);
  cudnnCreateRNNDescriptor(&rnn);
  const auto takes = [&](cudnnDataType_t type, cudnnDataType_t precision) {
    return cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                    CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, precision,
                                    CUDNN_TENSOR_OP_MATH, 4, 4, 4, 1, dropout,
                                    0) == CUDNN_STATUS_SUCCESS;
  };
  CHECK(takes(CUDNN_DATA_HALF, CUDNN_DATA_FLOAT));
  CHECK_FALSE(takes(CUDNN_DATA_HALF, CUDNN_DATA_HALF));
  control().set_cudnn(91300);
  CHECK(takes(CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT));
  control().set_cudnn(91201);
  CHECK_FALSE(takes(CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT));
  CHECK(takes(CUDNN_DATA_HALF, CUDNN_DATA_FLOAT));
  control().set_cudnn(0);
  const OnCapability turing(75);
  CHECK_FALSE(takes(CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT));
  cudnnDestroyRNNDescriptor(rnn);
  cudnnDestroyDropoutDescriptor(dropout);
  cudnnDestroy(handle);
}

}  // namespace ebb::tests
