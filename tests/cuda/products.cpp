// Products and attention larger than a tile, and convolutions, compared with the CPU: blocks that
// begin in the middle, scores tile by tile.
#include <functional>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"
#include "ebb/tests/golden/golden.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Values that repeat after a prime number of elements, so that no two tiles are alike.
Tensor filled(const Shape& shape, int step, DType dtype) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>((i * step) % 251 - 125) / 125);
  return cast(Tensor::from(values, shape), dtype);
}

// Compares the function and its gradients on both devices.
void check(const std::function<Tensor(const Tensors&)>& function, const Tensors& inputs) {
  const Device device = own_cuda();
  const double near = inputs[0].dtype() == DType::f64 ? 1e-12 : 2e-5;
  const auto all = [&](const Device& on) {
    Tensors leaves, wanted;
    for (const Tensor& input : inputs) {
      leaves.push_back(input.to(on));
      if (!is_floating(input.dtype())) continue;
      leaves.back() = leaves.back().with_grad();
      wanted.push_back(leaves.back());
    }
    const Tensor y = function(leaves);
    Tensors results = gradients(sum(square(y)), wanted);
    results.push_back(y);
    for (Tensor& result : results) result = result.detach().to(Device::cpu());
    return results;
  };
  const Tensors right = all(Device::cpu()), got = all(device);
  for (std::size_t i = 0; i < right.size(); ++i) {
    CAPTURE(i);
    CHECK(distance(got[i], right[i]) < near);
  }
}

}  // namespace

TEST_CASE("a layer whose products the library refuses is done by its next algorithms, or by ebb") {
  const Machine machine;
  // The emulated library offers one to four algorithms, by the sum of out and in, and refuses the
  // first of some sizes when it is launched.
  for (const std::int64_t rows : {12, 13})
    for (const std::int64_t in : {8, 9, 10, 12})
      for (const DType dtype : {DType::f32, DType::f64}) {
        CAPTURE(rows, in);
        const auto layer = [](const Tensors& x) { return dense(x[0], x[1], x[2]); };
        const std::uint64_t before = machine.statistics().library_calls;
        check(layer,
              {filled({rows, in}, 7, dtype), filled({in, 8}, 11, dtype), filled({8}, 3, dtype)});
        // Ebb's own are y = x w over `in`, and dw = x^T dy over `rows`, where there was no other.
        const std::uint64_t own = rows == 12 ? (in == 12) + (in % 4 == 0) : 0;
        CHECK(machine.statistics().library_calls - before == 3 - own);
      }
}

TEST_CASE("batches of products are those of the CPU, a call for each axis that broadcasts") {
  const Machine machine;
  const auto product = [](const Tensors& in) { return matmul(in[0], in[1]); };
  const auto transposed = [](const Tensors& in) {
    return matmul(in[0], in[1], {.transpose_a = true, .transpose_b = true});
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    check(product, {filled({3, 65, 33}, 7, dtype), filled({3, 33, 70}, 11, dtype)});
    check(product, {filled({2, 1, 65, 32}, 7, dtype), filled({3, 32, 68}, 11, dtype)});
    check(product, {filled({2, 9, 20}, 7, dtype), filled({20, 8}, 11, dtype)});
    check(transposed, {filled({5, 33, 66}, 7, dtype), filled({70, 33}, 11, dtype)});
  }
  const Device device = own_cuda();
  const auto calls_of = [&](const Shape& a, const Shape& b) {
    const Tensor x = filled(a, 3, DType::f32).to(device), y = filled(b, 5, DType::f32).to(device);
    const std::uint64_t before = machine.statistics().library_calls;
    const Tensor on_host = matmul(x.to(Device::cpu()), y.to(Device::cpu()));
    CHECK(distance(matmul(x, y).to(Device::cpu()), on_host) < 1e-6);
    return machine.statistics().library_calls - before;
  };
  CHECK(calls_of({6, 8, 4}, {6, 4, 8}) == 1);
  CHECK(calls_of({6, 8, 4}, {4, 8}) == 1);
  CHECK(calls_of({8, 4}, {2, 3, 4, 8}) == 1);
  CHECK(calls_of({5, 1, 8, 4}, {3, 4, 8}) == 3);  // each call batches the longer axis
  CHECK(calls_of({2, 1, 8, 4}, {3, 4, 8}) == 2);
  CHECK(calls_of({6, 3, 5}, {6, 5, 3}) == 1);  // factors that begin at any element
}

TEST_CASE("convolutions are those of the CPU") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t groups : {1, 2}) {
      CAPTURE(dtype, groups);
      check(
          [groups](const Tensors& in) {
            return conv2d(
                in[0], in[1], in[2],
                {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = groups});
          },
          {filled({7, 16, 17, 20}, 7, dtype), filled({70, 16 / groups, 3, 3}, 11, dtype),
           filled({70}, 3, dtype)});
      check(
          [groups](const Tensors& in) {
            return conv_transpose2d(in[0], in[1], in[2],
                                    {.stride = {2, 3},
                                     .padding = {1, 2},
                                     .output_padding = {1, 0},
                                     .dilation = {1, 2},
                                     .groups = groups});
          },
          {filled({3, 16, 17, 20}, 7, dtype), filled({16, 70 / groups, 3, 3}, 11, dtype),
           filled({70}, 3, dtype)});
    }
}

TEST_CASE("pools whose windows overlap are those of the CPU") {
  const Tensor x = filled({3, 5, 21, 18}, 7, DType::f32);
  check(
      [](const Tensors& in) { return max_pool2d(in[0], {.kernel = 3, .stride = 2, .padding = 1}); },
      {x});
  check(
      [](const Tensors& in) {
        return avg_pool2d(
            in[0],
            {.kernel = {3, 4}, .stride = {1, 3}, .padding = {1, 2}, .count_include_pad = false});
      },
      {x});
}

TEST_CASE("attention over more than a tile is that of the CPU") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool causal = GENERATE(false, true);
  const Tensor q = filled({2, 70, 40}, 7, dtype), k = filled({2, 150, 40}, 11, dtype);
  const auto attention = [causal](const Tensors& in) {
    return scaled_dot_product_attention(
        in[0], in[1], in[2], {.mask = in.size() > 3 ? in[3] : Tensor(), .causal = causal});
  };
  check(attention, {q, k, filled({2, 150, 70}, 3, dtype)});
  check(attention, {q, k, filled({2, 150, 9}, 3, dtype), filled({70, 150}, 13, dtype)});
  const Tensor counts = cast(filled({2, 1, 150}, 2, DType::f32) * 2, DType::i32);
  check(attention, {q, k, filled({2, 150, 9}, 3, dtype), cast(counts, DType::boolean)});
}
