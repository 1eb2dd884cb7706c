// What cuBLASLt and cuDNN take of f16 and bf16, and when they round.
#include <cudnn.h>

#include "ebb/tests/emulated_cuda/self/product.h"

namespace ebb::tests {
namespace {

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
  product.set_epilogue(CUBLASLT_EPILOGUE_BIAS, vector.get());
  REQUIRE(product.choose());
  REQUIRE(product.run(a.get(), b.get(), d.get(), stream) == CUBLAS_STATUS_SUCCESS);
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
  CHECK(product.run(a.get(), b.get(), d.get(), stream) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.choose());
  CHECK(product.run(a.get() + 1, b.get(), d.get(), stream) == CUBLAS_STATUS_INVALID_VALUE);
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
    REQUIRE(product.run(a.get(), b.get(), d.get(), stream, work.get(), 4096) ==
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
  product.set_epilogue(CUBLASLT_EPILOGUE_BIAS, bias.get());
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
