// f16 and bf16 on a GPU: when libraries compute them, when results are rounded, and views that
// begin at any element.
#include <cmath>

#include "ebb/core/base/half.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};

// Multiples of 0.25, so that short sums of products are exact in float.
Tensor quarters(const Shape& shape, DType dtype, const Device& device) {
  const std::vector<float> values = tests::ramp(static_cast<std::size_t>(shape.elements()));
  return cast(Tensor::from(values, shape), dtype).to(device);
}

std::vector<float> floats(const Tensor& x) { return cast(x, DType::f32).to_vector<float>(); }

struct SmallLstm {
  explicit SmallLstm(DType dtype, const Device& device)
      : x(quarters({4, 5, 8}, dtype, device).with_grad()),
        weights{.input = quarters({8, 64}, dtype, device).with_grad(),
                .recurrent = quarters({16, 64}, dtype, device).with_grad(),
                .bias = quarters({64}, dtype, device).with_grad()} {}
  Tensor loss() const { return sum(lstm(x, {&weights, 1}).sequence); }

  Tensor x;
  LstmWeights weights;
};

// Whether cuDNN computes the LSTM: only then does an injected cuDNN error show.
bool is_by_cudnn(const Machine& machine, DType dtype) {
  const SmallLstm model(dtype, own_cuda());
  machine->inject(Fault::cudnn, 0, 5000);  // CUDNN_STATUS_EXECUTION_FAILED
  bool by_cudnn = false;
  try {
    static_cast<void>(floats(model.loss()));
  } catch (const Error&) {
    by_cudnn = true;
  }
  machine->inject(Fault::cudnn, 0, -1);
  return by_cudnn;
}

std::size_t library_calls_of_product(const Machine& machine, DType dtype) {
  const Device device = own_cuda();
  const Tensor a = quarters({8, 16}, dtype, device), b = quarters({16, 8}, dtype, device);
  return machine.count(&emulated::Statistics::library_calls, [&] {
    CHECK(floats(matmul(a, b)) == floats(matmul(a.to(Device::cpu()), b.to(Device::cpu()))));
  });
}

}  // namespace

TEST_CASE("cuDNN has LSTMs of bf16 since 9.13 and compute capability 8.0, and those of f16 ever") {
  const Machine machine;
  CHECK(is_by_cudnn(machine, DType::bf16));
  machine->set_cudnn(91300);
  CHECK(is_by_cudnn(machine, DType::bf16));
  machine->set_cudnn(91200);
  CHECK_FALSE(is_by_cudnn(machine, DType::bf16));
  CHECK(is_by_cudnn(machine, DType::f16));
  CHECK(is_by_cudnn(machine, DType::f32));
  machine->set_cudnn(0);
  machine->set_capability(75);
  CHECK_FALSE(is_by_cudnn(machine, DType::bf16));
  CHECK(is_by_cudnn(machine, DType::f16));
}

TEST_CASE("an LSTM of 16 bits takes the memory that the device's twin says, by cuDNN or not") {
  const Machine machine;
  for (const int version : {91200, 91300}) {
    machine->set_cudnn(version);
    for (const DType dtype : kHalves) {
      const auto peak = [&](const Device& device) {
        const SmallLstm model(dtype, device);
        memory::reset_peaks(device);
        model.loss().backward();
        return memory::stats(device).allocated.peak;
      };
      const Device device = own_cuda();
      const Device twin = Runtime::make_simulated(device.runtime().profile(), std::size_t{4} << 30);
      CHECK(peak(device) == peak(twin));
    }
  }
}

TEST_CASE("both forms of an LSTM of 16 bits give what the CPU gives, up to their rounding") {
  const Machine machine;
  const auto results = [](DType dtype, const Device& device) {
    const SmallLstm model(dtype, device);
    model.loss().backward();
    std::vector<std::vector<float>> all = {floats(lstm(model.x, {&model.weights, 1}).sequence)};
    for (const Tensor& input : {model.x, model.weights.input, model.weights.bias})
      all.push_back(floats(input.grad()));
    return all;
  };
  const auto right = results(DType::f32, Device::cpu());
  for (const int version : {91200, 91300}) {
    machine->set_cudnn(version);
    const auto got = results(DType::bf16, own_cuda());
    for (std::size_t k = 0; k < right.size(); ++k) {
      float largest = 0, furthest = 0;
      for (std::size_t i = 0; i < right[k].size(); ++i) {
        largest = std::max(largest, std::abs(right[k][i]));
        furthest = std::max(furthest, std::abs(right[k][i] - got[k][i]));
      }
      INFO("result " << k << ", cuDNN " << version);
      CHECK(furthest <= 0.04f * largest);
    }
  }
}

TEST_CASE("products of bf16 are ebb's own where cuBLASLt has none: before compute capability 8.0") {
  const Machine machine;
  for (const DType dtype : kHalves) CHECK(library_calls_of_product(machine, dtype) == 1);
  machine->set_capability(75);
  CHECK(library_calls_of_product(machine, DType::bf16) == 0);
  CHECK(library_calls_of_product(machine, DType::f16) == 1);
}

TEST_CASE("a layer of 16 bits is rounded once, by cuBLASLt and by ebb's own product") {
  const Machine machine;
  for (const int capability : {75, 80}) {
    machine->set_capability(capability);
    const Device device = own_cuda();
    // 256 + 1 and then - 256: a product that is rounded before the bias is added loses the 1.
    const Tensor x = Tensor::full({1, 257}, 1, DType::bf16, device);
    const Tensor w = Tensor::full({257, 8}, 1, DType::bf16, device);
    const Tensor b = Tensor::full({8}, -256, DType::bf16, device);
    for (const Activation activation : {Activation::none, Activation::relu})
      CHECK(floats(dense(x, w, b, activation)) == std::vector<float>(8, 1));
  }
}

TEST_CASE("parts of a product's sum are not rounded to 16 bits before they are added up") {
  const Machine machine;
  const Device device = own_cuda();
  constexpr std::int64_t kInner = 16384;
  // The quarters of the sum are 4096 or -4096, except the first: 4111, which f16 and bf16 cannot
  // represent.
  std::vector<float> column(kInner, 1);
  std::fill(column.begin() + kInner / 2, column.end(), -1.0f);
  std::fill_n(column.begin(), 15, 2.0f);
  for (const DType dtype : kHalves) {
    const Tensor a = Tensor::full({16, kInner}, 1, dtype, device);
    const Tensor b = cast(Tensor::from(column, {kInner, 1}) * Tensor::full({1, 16}, 1), dtype);
    CHECK(floats(matmul(a, b.to(device))) == std::vector<float>(256, 15));
  }
}

TEST_CASE("views of 16 bits that begin at an odd element give what aligned ones give") {
  const Machine machine;
  const Device device = own_cuda();
  for (const DType dtype : kHalves)
    for (const std::int64_t size : {0, 1, 7, 8, 9, 40}) {
      INFO(name(dtype) << ", " << size << " elements");
      const auto same = [&](auto f) {
        const auto result = [&](const Device& on, std::int64_t from) {
          const auto view = [&](std::int64_t rows) {
            const Tensor all = quarters({rows + 3}, dtype, on);
            return from == 0 ? slice(all, 1, rows + 1).clone() : slice(all, 1, rows + 1);
          };
          return floats(f(view(size)));
        };
        const std::vector<float> right = result(Device::cpu(), 0);
        CHECK(result(device, 0) == right);
        CHECK(result(device, 1) == right);
      };
      same([](const Tensor& x) { return x * 2 + x; });
      same([](const Tensor& x) { return x * 0.3; });
      same([](const Tensor& x) { return relu(x); });
      same([](const Tensor& x) { return sum(x); });
      same([](const Tensor& x) { return cast(x, DType::f32); });
      same([](const Tensor& x) { return cast(x, DType::u8); });
      same([](const Tensor& x) { return cast(x, DType::f64); });
      same([](const Tensor& x) { return x.clone(); });
      same([&](const Tensor& x) { return reshape(x, {-1, 1}) * reshape(x, {1, -1}); });
      same([&](const Tensor& x) { return matmul(reshape(x, {size, 1}), reshape(x, {1, size})); });
      same([&](const Tensor& x) { return sum(reshape(x, {1, size}) * 1, {.axes = {0}}); });
    }
}

TEST_CASE("more than 2^31 elements of 16 bits have two bytes each, on a twin") {
  const Device twin = Device::simulated("h100", std::size_t{1} << 40);
  constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 9;
  for (const DType dtype : kHalves) {
    const Tensor x = Tensor::zeros({kMany}, dtype, twin);
    const std::size_t before = memory::stats(twin).requested.current;
    const Tensor y = x * 2, total = sum(y);
    CHECK(memory::stats(twin).requested.current - before == 2 * std::size_t{kMany} + 2);
  }
}
