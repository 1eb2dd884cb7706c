// Operators by index: repeated indices, indices out of range, refusals.
#include "ebb/core/ops/index.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

Tensor table(std::int64_t rows, std::int64_t features) {
  Floats values;
  for (std::int64_t i = 0; i < rows * features; ++i) values.push_back(static_cast<float>(i));
  return Tensor::from(values, {rows, features});
}

}  // namespace

TEST_CASE("on a GPU an index out of range chooses NaN, or 0 of integers, and gives nothing back") {
  if (!on_cuda()) return;  // the CPU refuses it: tests/graph/out_of_range.cpp
  const Tensor indices = Tensor::from({-1, 1, 2, 5});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(name(dtype));
    const Tensor x = cast(table(2, 3), dtype).with_grad();
    const Tensor y = index_select(x, indices);
    const Floats values = y.to_vector<float>();
    for (const std::size_t row : {0u, 2u, 3u})
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(values[row * 3 + i]));
    CHECK(Floats(values.begin() + 3, values.begin() + 6) == Floats{3, 4, 5});
    sum(y).backward();
    CHECK(x.grad().to_vector<float>() == Floats{0, 0, 0, 1, 1, 1});
  }
  const Tensor whole = Tensor::from({7, 8});
  CHECK(index_select(whole, indices).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{0, 8, 0, 0});
}

TEST_CASE("one_hot of an index out of range is zeros") {
  CHECK(one_hot(Tensor::from({-1, 1, 2, 5}), 2).to_vector<float>() ==
        Floats{0, 0, 0, 1, 0, 0, 0, 0});
}

TEST_CASE("on a GPU nothing is added at an index out of range, and it has no gradient") {
  if (!on_cuda()) return;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(name(dtype));
    const auto floats = [](const Tensor& x) { return x.to_vector<float>(); };
    const Tensor x = Tensor::zeros({2, 2}, dtype);
    const Tensor values = Tensor::full({3, 2}, 1, dtype).with_grad();
    const Tensor y = index_add(x, Tensor::from({1, 2, -1}), values);
    CHECK(floats(y) == Floats{0, 0, 1, 1});
    CHECK(floats(gradients(sum(y * 3), {values})[0]) == Floats{3, 3, 0, 0, 0, 0});
    const Tensor z = scatter_add(x, 0, Tensor::from({{1, 2}, {-1, 0}, {0, 1}}), values);
    CHECK(floats(z) == Floats{1, 1, 1, 1});
    CHECK(floats(gradients(sum(z * 3), {values})[0]) == Floats{3, 0, 0, 3, 3, 3});

    // In second derivatives too, dy of an index out of range has the gradient 0.
    const Tensor rows = Tensor::full({2, 2}, 2, dtype).with_grad();
    const Tensor dy = Tensor::full({3, 2}, 1, dtype).with_grad();
    const Tensor chosen = index_select(rows, Tensor::from({1, 2, -1}));
    const Tensor first = gradients(sum(chosen * dy), {rows}, {.create_graph = true})[0];
    CHECK(floats(gradients(sum(first), {dy})[0]) == Floats{1, 1, 0, 0, 0, 0});
  }
}

TEST_CASE("what is added several times is added in the order of the indices") {
  for (const Shape& shape :
       {Shape{1, 20'000, 1}, Shape{3, 9000, 1}, Shape{2, 70, 300}, Shape{300, 5, 2}}) {
    CAPTURE(shape.to_string());
    const std::int64_t outer = shape[0], size = shape[1], inner = shape[2], chosen = 200;
    std::vector<std::int64_t> indices;
    Floats values, sums(static_cast<std::size_t>(shape.elements()));
    for (std::int64_t i = 0; i < outer * chosen * inner; ++i) {
      indices.push_back(i * (i + 31) % 7919 % size);
      values.push_back(0.3f + 0.7f * float(i % 5));
      const std::int64_t at = (i / (chosen * inner) * size + indices.back()) * inner + i % inner;
      sums[static_cast<std::size_t>(at)] += values.back();
    }
    const Shape parts{outer, chosen, inner};
    CHECK(scatter_add(Tensor::zeros(shape), 1, Tensor::from(indices, parts),
                      Tensor::from(values, parts))
              .to_vector<float>() == sums);
  }
  // Elements that go to the same row are added one after the other, in the order of the indices.
  const Floats large = {1e8f, 1, 1, -1e8f, 1, 0.5f};
  float sum = 0;
  for (const float value : large) sum += value;
  const Tensor added =
      index_add(Tensor::zeros({2, 1}), Tensor::zeros({6}, DType::i64), Tensor::from(large, {6, 1}));
  CHECK(added.to_vector<float>() == Floats{sum, 0});
  CHECK(gather(Tensor::zeros({2, 0}), 1, Tensor::zeros({2, 0}, DType::i64)).shape() == Shape{2, 0});
}

TEST_CASE("indices that make no sense are refused, in words") {
  const Tensor x = table(2, 3), indices = Tensor::from({0, 1});
  EBB_REFUSES(index_select(x, x), ShapeError, "[index_select] indices must be i32 or i64");
  EBB_REFUSES(index_select(x, indices, 2), ShapeError, "[index_select] there is no axis 2");
  EBB_REFUSES(index_select(x, indices, -3), ShapeError, "[index_select] there is no axis -3");
  EBB_REFUSES(index_select(x, Tensor::zeros({1, 1, 1, 1, 1, 1}, DType::i32)), ShapeError,
              "more than 6 axes");
  EBB_REFUSES(embedding(Tensor::zeros({3}), indices), ShapeError, "[embedding] takes a table");
  EBB_REFUSES(gather(x, 1, x), ShapeError, "[gather] indices must be i32 or i64");
  EBB_REFUSES(gather(x, 2, indices), ShapeError, "[gather] there is no axis 2");
  EBB_REFUSES(
      gather(x, 1, indices), ShapeError,
      "[gather] indices must have the shape of x but for axis 1; inputs are f32[2, 3], i32[2]");
  EBB_REFUSES(gather(x, 0, Tensor::zeros({5, 2}, DType::i32)), ShapeError, "but for axis 0");
  EBB_REFUSES(one_hot(x, 3), ShapeError, "[one_hot] indices must be i32 or i64");
  EBB_REFUSES(one_hot(indices, -1), ShapeError, "[one_hot] takes a number of classes from 0");
  EBB_REFUSES(one_hot(indices, 3, DType::i32), ShapeError, "[one_hot] gives f32");
}

}  // namespace ebb::tests
