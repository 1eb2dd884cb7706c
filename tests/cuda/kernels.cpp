// Edge cases of kernels: views that begin at any element, the last element of runs and tiles, and
// more work than a launch has threads.
#include <cmath>
#include <functional>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/random/random.h"
#include "ebb/models/lstm.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

Tensor ones(const Shape& shape, const Device& device) {
  return Tensor::full(shape, 1, DType::f32, device);
}

}  // namespace

TEST_CASE("ebb's products of factors that begin at any element are right to the last one") {
  const Machine machine;
  const Device device = own_cuda();
  const std::uint64_t before = machine.statistics().library_calls;
  // The emulated library refuses these when they are launched.
  const std::int64_t sizes[][3] = {{1, 3, 2},    {5, 3, 7},    {63, 65, 17},
                                   {64, 64, 67}, {65, 67, 32}, {130, 2, 52}};
  for (const std::int64_t(&size)[3] : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const std::int64_t m = size[0], n = size[1], k = size[2];
        CAPTURE(m, n, k, transpose_a, transpose_b);
        const auto product = [&](const Device& on) {
          const auto factor = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
            if (transposed) std::swap(rows, columns);
            const std::int64_t count = rows * columns + 1;
            const Tensor all = Tensor::from(ramp(static_cast<std::size_t>(count)), {count});
            return reshape(slice(all.to(on), 1), {rows, columns});
          };
          return matmul(factor(m, k, transpose_a), factor(k, n, transpose_b),
                        {.transpose_a = transpose_a, .transpose_b = transpose_b})
              .to_vector<float>();
        };
        CHECK(product(device) == product(Device::cpu()));  // exact: the numbers are quarters
      }
  CHECK(machine.statistics().library_calls == before);
}

TEST_CASE("elementwise work is done to its end, however much it is") {
  const Device device = own_cuda();
  const std::int64_t many = (1 << 14) * 256 + 1000;     // more than the threads of a launch
  const Tensor x = slice(ones({many + 1}, device), 1);  // unaligned: an element for each thread
  const std::vector<float> got = (x + 1).to_vector<float>();
  CHECK(std::all_of(got.begin(), got.end(), [](float value) { return value == 2; }));
}

TEST_CASE("sums of very many short rows and columns are all made") {
  const Device device = own_cuda();
  const std::int64_t rows = (1 << 14) * 256 + 1000, matrices = (1 << 14) + 100;
  const std::vector<float> of_rows = sum(ones({rows, 2}, device), {.axes = {1}}).to_vector<float>();
  CHECK(std::all_of(of_rows.begin(), of_rows.end(), [](float value) { return value == 2; }));
  std::vector<float> terms(static_cast<std::size_t>(matrices * 6)), right;
  for (std::int64_t i = 0; i < matrices; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      terms[static_cast<std::size_t>(i * 6 + j)] = static_cast<float>(i % 1000 + j);
  for (std::int64_t i = 0; i < matrices; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      right.push_back(static_cast<float>(3 * (i % 1000 + j) + 6));
  const Tensor x = Tensor::from(terms, {matrices, 3, 2}).to(device);
  CHECK(sum(x, {.axes = {1}}).to_vector<float>() == right);
}

TEST_CASE("sums down very long columns count all of their parts") {
  const Device device = own_cuda();
  const std::int64_t rows = 150000;  // their parts are cut into parts, by the same plan
  const std::vector<float> totals = sum(ones({rows, 32}, device), {.axes = {0}}).to_vector<float>();
  CHECK(totals == std::vector<float>(32, static_cast<float>(rows)));
}

TEST_CASE("a bias alone has its gradient, of many rows") {
  const Device device = own_cuda();
  const Tensor b = ones({33}, device).with_grad();
  sum(dense(ones({3000, 8}, device), ones({8, 33}, device), b)).backward();
  CHECK(b.grad().to_vector<float>() == std::vector<float>(33, 3000));
}

TEST_CASE("a layer and an LSTM of very many rows compute them all") {
  for (const char* form : {"composed", ""}) {
    const Variable variable("EBB_CUDA_LSTM", form);
    const Device device = own_cuda();
    const std::int64_t batch = (1 << 17) + 50;
    const Tensor x = ones({batch, 1, 1}, device);
    const std::vector<float> rows =
        dense(reshape(x, {batch, 1}), ones({1, 1}, device), ones({1}, device), Activation::tanh)
            .to_vector<float>();
    CHECK(std::all_of(rows.begin(), rows.end(), [&](float value) { return value == rows[0]; }));
    Parameters parameters(device, Seed{3});
    const models::Lstm lstm(parameters, 1, {.hidden = 1});
    const std::vector<float> states = lstm(x, Phase::inference).sequence.to_vector<float>();
    CHECK(states[0] != 0);
    CHECK(
        std::all_of(states.begin(), states.end(), [&](float value) { return value == states[0]; }));
  }
}

TEST_CASE("sums are right for every number of terms about which runs and parts are cut") {
  const Device device = own_cuda();
  const auto check = [&](std::int64_t terms, std::int64_t others) {
    CAPTURE(terms, others);
    const auto sums = [&](const Device& on, std::int32_t axis) {  // exact: the numbers are quarters
      const Shape shape = axis == 1 ? Shape{others, terms} : Shape{terms, others};
      const Tensor all = Tensor::from(ramp(static_cast<std::size_t>(terms * others)), shape);
      return sum(all.to(on), axis).to_vector<float>();
    };
    for (const std::int32_t axis : {0, 1}) CHECK(sums(device, axis) == sums(Device::cpu(), axis));
  };
  for (std::int64_t terms = 50; terms < 70; ++terms) check(terms, 33);
  for (std::int64_t terms = 220; terms < 260; ++terms) check(terms, 3);
  for (std::int64_t terms = 1790; terms < 1800; ++terms) check(terms, 2);
}

TEST_CASE("the gradient of a part in the middle is zero everywhere else") {
  const Device device = own_cuda();
  const auto gradient = [&](const auto& part) {
    const Tensor x = ones({4, 3, 5}, device).with_grad();
    sum(part(x)).backward();
    return x.grad().to_vector<float>();
  };
  const std::vector<float> selected = gradient([](const Tensor& x) { return select(x, 1, 1); });
  const std::vector<float> sliced = gradient([](const Tensor& x) { return slice(x, 1, 3); });
  for (std::size_t i = 0; i < 60; ++i) {
    CHECK(selected[i] == static_cast<float>(i / 5 % 3 == 1));
    CHECK(sliced[i] == static_cast<float>(i / 15 == 1 || i / 15 == 2));
  }
}

TEST_CASE("a draw never comes to the open end of its range, whatever is rounded") {
  const Device device = own_cuda();
  const UniformOptions options = {.low = 0x1p24 - 1, .high = 0x1p24, .device = device};
  const std::vector<float> values = uniform({1000}, options).to_vector<float>();
  CHECK(std::all_of(values.begin(), values.end(), [](float value) { return value < 0x1p24f; }));
}

TEST_CASE("dropout zeroes the same elements wherever what it is applied to begins") {
  const Device device = own_cuda();
  const auto dropped = [&](const Tensor& x) {
    set_seed({5});
    return dropout(x, 0.5, Phase::training).to_vector<float>();
  };
  CHECK(dropped(slice(ones({38}, device), 1)) == dropped(ones({37}, device)));
}

TEST_CASE("rows have the same results wherever they begin: by packs, or one by one") {
  const Device device = own_cuda();
  const auto channels = [](const Tensor& x) { return reshape(x, {2, 3, 8, -1}); };
  const auto of = [](const Tensor& x, std::int64_t count) {  // begins where x does
    return slice(reshape(x, {-1}), 0, count);
  };
  const std::function<Tensor(const Tensor&)> calls[] = {
      [](const Tensor& x) { return softmax(x); },
      [](const Tensor& x) { return log_softmax(x); },
      [](const Tensor& x) { return softmax_cross_entropy(x, softmax(x)); },
      [](const Tensor& x) {
        return softmax_cross_entropy(x, Tensor::from({0, 9, 3, 2, 1, 7}).to(x.device()));
      },
      [&](const Tensor& x) { return layer_norm(x, of(x, x.shape()[1]), of(x, x.shape()[1])); },
      [&](const Tensor& x) { return group_norm(channels(x), 1, of(x, 3), of(x, 3)); }};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::int64_t columns : {16, 1040})
      for (const auto& call : calls) {
        CAPTURE(name(dtype), columns, &call - calls);
        const auto results = [&](std::int64_t first, const Device& on) {
          const std::int64_t count = 6 * columns;
          const Tensor all = Tensor::from(ramp(static_cast<std::size_t>(count)), {count});
          const Tensor held = cast(concat({slice(all, 0, first), all}), dtype).to(on);
          const Tensor x = reshape(slice(held, first), {6, columns}).with_grad();
          const Tensor y = call(x);
          sum(y * y).backward();
          return cast(concat({reshape(y, {-1}), reshape(x.grad(), {-1})}), DType::f64)
              .to_vector<double>();
        };
        const std::vector<double> packed = results(0, device), single = results(1, device),
                                  expected = results(0, Device::cpu());
        double largest = 0, apart = 0;
        for (std::size_t i = 0; i < packed.size(); ++i) {
          largest = std::max(largest, std::abs(expected[i]));
          apart =
              std::max({apart, std::abs(packed[i] - single[i]), std::abs(packed[i] - expected[i])});
        }
        CHECK(apart <= largest * (dtype == DType::bf16  ? 0x1p-5
                                  : dtype == DType::f16 ? 0x1p-8
                                                        : 1e-5));
      }
}

TEST_CASE("the gradient of a table of few rows is summed in parts, to the same bits every time") {
  const Device device = own_cuda();
  const std::int64_t rows = 65, columns = 40, count = 3000;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(i * i % rows);
  const auto gradient = [&](const Device& on, double scale) {
    const Tensor values =
        Tensor::from(ramp(static_cast<std::size_t>(count * columns)), {count, columns});
    const Tensor table = Tensor::zeros({rows, columns}).to(on).with_grad();
    sum(embedding(table, Tensor::from(indices, {count}).to(on)) * (values.to(on) * scale))
        .backward();
    return table.grad().to_vector<float>();
  };
  CHECK(gradient(device, 1) == gradient(Device::cpu(), 1));  // exact: the numbers are quarters
  CHECK(gradient(device, 0.1) == gradient(device, 0.1));
}
