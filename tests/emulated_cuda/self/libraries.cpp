// cuBLASLt and cuDNN against plain loops.
#include <cudnn.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "ebb/tests/emulated_cuda/self/product.h"

namespace ebb::tests {
TEST_CASE("Products with a bias and a ReLU, and their gradients, are those of plain loops") {
  const FreshDevice fresh;
  const TestStream stream;
  const std::size_t m = 37, n = 11, k = 300;
  const auto x = numbers<float>(m * k, 5), y = numbers<float>(k * n, 7),
             bias = numbers<float>(m, 3);
  const DeviceArray<float> a(x), b(y), vector(bias), d(m * n);
  const auto plain = [&](std::size_t row, std::size_t column) {
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) sum += x[i * m + row] * y[column * k + i];
    return sum;
  };
  {
    Product<float> product(m, n, k);
    product.set_epilogue(CUBLASLT_EPILOGUE_RELU_BIAS, vector.get());
    REQUIRE(product.choose());
    REQUIRE(product.run(a.get(), b.get(), d.get(), stream) == CUBLAS_STATUS_SUCCESS);
    const auto got = d.read(stream);
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t row = 0; row < m; ++row)
        REQUIRE(got[column * m + row] ==
                Approx(std::max(plain(row, column) + bias[row], 0.0)).margin(1e-4));
    CHECK(product.run(a.get(), b.get(), d.get(), nullptr) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(product.run(a.get() + 1, b.get(), d.get(), stream) == CUBLAS_STATUS_INVALID_VALUE);
  }
  {
    Product<float> product(m, n, k);
    product.set_epilogue(CUBLASLT_EPILOGUE_BGRADA, vector.get());
    REQUIRE(product.choose());
    REQUIRE(product.run(a.get(), b.get(), d.get(), stream) == CUBLAS_STATUS_SUCCESS);
    const auto sums = vector.read(stream);
    for (std::size_t row = 0; row < m; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += x[i * m + row];
      REQUIRE(sums[row] == Approx(sum).margin(1e-4));
    }
  }
}

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

namespace {

constexpr int kIn = 3, kHidden = 4, kLayers = 2, kSteps = 5, kBatch = 2;

// An LSTM of two layers in f64, and the sum of its outputs as a loss.
struct Lstm {
  Lstm() {
    REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
    cudnnCreateDropoutDescriptor(&dropout);
    REQUIRE(cudnnSetDropoutDescriptor(dropout, handle, 0, nullptr, 0, 0) == CUDNN_STATUS_SUCCESS);
    cudnnCreateRNNDescriptor(&rnn);
    REQUIRE(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
                                     CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
                                     CUDNN_LINEAR_INPUT, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE,
                                     CUDNN_DEFAULT_MATH, kIn, kHidden, kHidden, kLayers, dropout,
                                     0) == CUDNN_STATUS_SUCCESS);
    const std::vector<int> lengths(kBatch, kSteps);
    const auto data = [&](auto& desc, int width) {
      cudnnCreateRNNDataDescriptor(&desc);
      REQUIRE(cudnnSetRNNDataDescriptor(desc, CUDNN_DATA_DOUBLE,
                                        CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, kSteps, kBatch,
                                        width, lengths.data(), nullptr) == CUDNN_STATUS_SUCCESS);
    };
    data(x_desc, kIn);
    data(y_desc, kHidden);
    const int dims[] = {kLayers, kBatch, kHidden}, strides[] = {kBatch * kHidden, kHidden, 1};
    cudnnCreateTensorDescriptor(&state);
    REQUIRE(cudnnSetTensorNdDescriptor(state, CUDNN_DATA_DOUBLE, 3, dims, strides) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x_desc, &work_bytes,
                                      &reserve_bytes) == CUDNN_STATUS_SUCCESS);
  }
  ~Lstm() {
    cudnnDestroyRNNDataDescriptor(x_desc);
    cudnnDestroyRNNDataDescriptor(y_desc);
    cudnnDestroyTensorDescriptor(state);
    cudnnDestroyRNNDescriptor(rnn);
    cudnnDestroyDropoutDescriptor(dropout);
    cudnnDestroy(handle);
  }
  double loss(const std::vector<double>& x, const std::vector<double>& weights) {
    DeviceArray<double> device_x(x), device_weights(weights), y(kSteps * kBatch * kHidden);
    DeviceArray<char> work(work_bytes), reserve(reserve_bytes);
    forward(device_x.get(), device_weights.get(), y.get(), work.get(), reserve.get(), work_bytes);
    double sum = 0;
    for (const double value : y.read(stream)) sum += value;
    return sum;
  }
  void forward(double* x, double* weights, double* y, void* work, void* reserve,
               std::size_t workspace_bytes) {
    status = cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, nullptr, x_desc, x, y_desc, y,
                             state, nullptr, nullptr, state, nullptr, nullptr, weight_bytes,
                             weights, workspace_bytes, work, reserve_bytes, reserve);
  }
  const TestStream stream;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  cudnnHandle_t handle = nullptr;
  cudnnDropoutDescriptor_t dropout = nullptr;
  cudnnRNNDescriptor_t rnn = nullptr;
  cudnnRNNDataDescriptor_t x_desc = nullptr, y_desc = nullptr;
  cudnnTensorDescriptor_t state = nullptr;
  std::size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
};

std::vector<double> doubles(std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<double>(i)) / 2);
  return values;
}

}  // namespace

TEST_CASE("An LSTM's gradients are those of finite differences, and are added") {
  const FreshDevice fresh;
  Lstm lstm;
  const auto x = doubles(kSteps * kBatch * kIn), weights = doubles(lstm.weight_bytes / 8);
  const std::vector<double> ones(kSteps * kBatch * kHidden, 1.0);
  DeviceArray<double> device_x(x), device_weights(weights), y(ones.size()), dy(ones), dx(x.size()),
      dw(std::vector<double>(weights.size(), 100));
  DeviceArray<char> work(lstm.work_bytes), reserve(lstm.reserve_bytes);
  lstm.forward(device_x.get(), device_weights.get(), y.get(), work.get(), reserve.get(),
               lstm.work_bytes - 1);
  CHECK(lstm.status == CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
  lstm.forward(device_x.get(), device_weights.get(), y.get(), work.get(), reserve.get(),
               lstm.work_bytes);
  REQUIRE(lstm.status == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnRNNBackwardData_v8(lstm.handle, lstm.rnn, nullptr, lstm.y_desc, y.get(), dy.get(),
                                  lstm.x_desc, dx.get(), lstm.state, nullptr, nullptr, nullptr,
                                  lstm.state, nullptr, nullptr, nullptr, lstm.weight_bytes,
                                  device_weights.get(), lstm.work_bytes, work.get(),
                                  lstm.reserve_bytes, reserve.get()) == CUDNN_STATUS_SUCCESS);
  const auto backward_weights = [&](cudnnWgradMode_t mode) {
    return cudnnRNNBackwardWeights_v8(lstm.handle, lstm.rnn, mode, nullptr, lstm.x_desc,
                                      device_x.get(), lstm.state, nullptr, lstm.y_desc, y.get(),
                                      lstm.weight_bytes, dw.get(), lstm.work_bytes, work.get(),
                                      lstm.reserve_bytes, reserve.get());
  };
  CHECK(backward_weights(CUDNN_WGRAD_MODE_SET) != CUDNN_STATUS_SUCCESS);
  REQUIRE(backward_weights(CUDNN_WGRAD_MODE_ADD) == CUDNN_STATUS_SUCCESS);
  const double step = 1e-5;
  const auto slope = [&](std::vector<double> at, std::size_t i, bool of_x) {
    at[i] += step;
    const double up = of_x ? lstm.loss(at, weights) : lstm.loss(x, at);
    at[i] -= 2 * step;
    return (up - (of_x ? lstm.loss(at, weights) : lstm.loss(x, at))) / (2 * step);
  };
  const auto got_dx = dx.read(lstm.stream), got_dw = dw.read(lstm.stream);
  for (std::size_t i = 0; i < x.size(); i += 7)
    CHECK(got_dx[i] == Approx(slope(x, i, true)).margin(1e-7));
  for (std::size_t i = 0; i < weights.size(); i += 5)
    CHECK(got_dw[i] - 100 == Approx(slope(weights, i, false)).margin(1e-7));
}

}  // namespace ebb::tests
