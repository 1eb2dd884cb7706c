// What cuBLASLt and cuDNN take, and when they round. Their values are those that tests/ops asks
// for.
#include <cudnn.h>

#include "ebb/tests/emulated_cuda/self/product.h"

namespace ebb::tests {
namespace {

struct OnCapability {
  explicit OnCapability(int capability) { control().set_capability(capability); }
  ~OnCapability() { control().set_capability(0); }
};

}  // namespace

TEST_CASE("What cuBLASLt does not take, its heuristic refuses") {
  const FreshDevice fresh;
  Product<float> product(8, 8, 8);
  product.set_epilogue(CUBLASLT_EPILOGUE_BIAS, nullptr);
  CHECK_FALSE(product.choose());  // no bias
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  CHECK(product.choose());
  product.prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{2});
  CHECK_FALSE(product.choose());
  product.prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{256});
  CHECK(product.choose());
  product.set_leading_dimension(4);
  CHECK_FALSE(product.choose());
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
