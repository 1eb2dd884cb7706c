// Indices that repeat, are out of range, or choose from more than one tile holds.
#include "ebb/core/ops/index.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

Tensor table(std::int64_t rows, std::int64_t features) {
  Floats values;
  for (std::int64_t i = 0; i < rows * features; ++i) values.push_back(static_cast<float>(i));
  return Tensor::from(values, {rows, features});
}

}  // namespace

TEST_CASE("what indices choose repeatedly has the sum of its gradients") {
  const Tensor x = table(4, 2).with_grad();
  const Tensor y = embedding(x, Tensor::from({3, 1, 3, 3}));
  CHECK(y.to_vector<float>() == Floats{6, 7, 2, 3, 6, 7, 6, 7});
  sum(y * Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}, {7.f, 8.f}})).backward();
  CHECK(x.grad().to_vector<float>() == Floats{0, 0, 3, 4, 0, 0, 13, 16});
}

TEST_CASE("on a GPU an index out of range chooses NaN, or 0 of integers, and gives nothing back") {
  if (!on_cuda()) return;  // the CPU refuses it: tests/graph/out_of_range.cpp
  const Tensor indices = Tensor::from({-1, 1, 2, 5});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(name(dtype));
    const Tensor x = cast(table(2, 3), dtype).with_grad();
    const Tensor y = index_select(x, indices);
    const Floats values = cast(y, DType::f32).to_vector<float>();
    for (const std::size_t row : {0u, 2u, 3u})
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(values[row * 3 + i]));
    CHECK(Floats(values.begin() + 3, values.begin() + 6) == Floats{3, 4, 5});
    sum(y).backward();
    CHECK(cast(x.grad(), DType::f32).to_vector<float>() == Floats{0, 0, 0, 1, 1, 1});
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
    const auto floats = [](const Tensor& x) { return cast(x, DType::f32).to_vector<float>(); };
    const Tensor x = Tensor::zeros({2, 2}, dtype);
    const Tensor values = Tensor::full({3, 2}, 1, dtype).with_grad();
    const Tensor y = index_add(x, Tensor::from({1, 2, -1}), values);
    CHECK(floats(y) == Floats{0, 0, 1, 1});
    CHECK(floats(gradients(sum(y * 3), {values})[0]) == Floats{3, 3, 0, 0, 0, 0});
    const Tensor z = scatter_add(x, 0, Tensor::from({{1, 2}, {-1, 0}, {0, 1}}), values);
    CHECK(floats(z) == Floats{1, 1, 1, 1});
    CHECK(floats(gradients(sum(z * 3), {values})[0]) == Floats{3, 0, 0, 3, 3, 3});

    // In the second derivative of what is chosen, that of its gradient.
    const Tensor rows = Tensor::full({2, 2}, 2, dtype).with_grad();
    const Tensor dy = Tensor::full({3, 2}, 1, dtype).with_grad();
    const Tensor chosen = index_select(rows, Tensor::from({1, 2, -1}));
    const Tensor first = gradients(sum(chosen * dy), {rows}, {.create_graph = true})[0];
    CHECK(floats(gradients(sum(first), {dy})[0]) == Floats{1, 1, 0, 0, 0, 0});
  }
}

TEST_CASE("parts of any width are found and added, however many there are") {
  for (const std::int64_t rows : {1, 40, 9000})
    for (const std::int64_t features : {1, 3, 8, 300}) {
      if (rows * features > 400'000) continue;
      for (const std::int64_t chosen : {1, 255, 700}) {
        CAPTURE(rows, features, chosen);
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < chosen; ++i)
          indices.push_back(i * i * 7919 % (rows + on_cuda()));
        const Tensor x = table(rows, features).with_grad();
        const Tensor y = index_select(x, Tensor::from(indices, {chosen}));
        const Floats got = y.to_vector<float>();
        sum(y).backward();
        std::vector<int> counts(static_cast<std::size_t>(rows));
        bool right = true;
        for (std::size_t k = 0; k < indices.size(); ++k) {
          const bool is_there = indices[k] < rows;
          if (is_there) ++counts[static_cast<std::size_t>(indices[k])];
          for (std::int64_t i = 0; i < features; ++i) {
            const float value =
                got[k * static_cast<std::size_t>(features) + static_cast<std::size_t>(i)];
            right = right && (is_there ? value == static_cast<float>(indices[k] * features + i)
                                       : std::isnan(value));
          }
        }
        CHECK(right);
        const Floats gradient = x.grad().to_vector<float>();
        for (std::size_t i = 0; i < gradient.size() && right; ++i)
          right = gradient[i] == static_cast<float>(counts[i / static_cast<std::size_t>(features)]);
        CHECK(right);
      }
    }
}

TEST_CASE("values are added where indices say") {
  const Tensor x = Tensor::full({2, 3}, 10);
  const Tensor indices = Tensor::from({2, 0, 2});
  const Tensor values = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).with_grad();
  const Tensor y = index_add(x, indices, values, 1);
  CHECK(y.to_vector<float>() == Floats{12, 10, 14, 15, 10, 20});
  sum(y * table(2, 3)).backward();
  CHECK(values.grad().to_vector<float>() == Floats{2, 0, 2, 5, 3, 5});
}

TEST_CASE("gather takes elements one by one, and scatter_add puts them back") {
  const Tensor x = table(3, 4).with_grad();
  const Tensor columns = Tensor::from({{3, 3}, {0, 2}, {2, 1}});
  const Tensor y = gather(x, 1, columns);
  CHECK(y.to_vector<float>() == Floats{3, 3, 4, 6, 10, 9});
  sum(y * Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}})).backward();
  CHECK(x.grad().to_vector<float>() == Floats{0, 0, 0, 3, 3, 0, 4, 0, 0, 6, 5, 0});
  const Tensor rows = Tensor::from({{2, 0, 1, 2}, {2, 2, 1, 0}});
  const Tensor updates = table(2, 4).with_grad();
  const Tensor z = scatter_add(Tensor::full({3, 4}, 10), 0, rows, updates);
  CHECK(z.to_vector<float>() == Floats{10, 11, 10, 17, 10, 10, 18, 10, 14, 15, 10, 13});
  sum(z * table(3, 4)).backward();
  CHECK(updates.grad().to_vector<float>() == Floats{8, 1, 6, 11, 8, 9, 6, 3});
  CHECK(gather(Tensor::from({{7, 8}}), -1, Tensor::from({{1, 1, 0}})).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{8, 8, 7});
  CHECK(gather(Tensor::zeros({2, 0}), 1, Tensor::zeros({2, 0}, DType::i64)).shape() == Shape{2, 0});
  CHECK(scatter_add(x.detach(), 1, Tensor::zeros({3, 0}, DType::i32), Tensor::zeros({3, 0}))
            .to_vector<float>() == table(3, 4).to_vector<float>());
}

TEST_CASE("what is gathered from many tiles is found, and added in the order of the indices") {
  for (const Shape& shape : {Shape{1, 20'000, 1}, Shape{3, 9000, 1}, Shape{2, 70, 300},
                             Shape{300, 5, 2}, Shape{1, 3, 70'000}})
    for (const std::int64_t chosen : {1, 7, 600}) {
      const std::int64_t outer = shape[0], size = shape[1], inner = shape[2];
      if (outer * chosen * inner > 1'500'000) continue;
      CAPTURE(shape.to_string(), chosen);
      Floats values;
      for (std::int64_t i = 0; i < shape.elements(); ++i) values.push_back(0.1f * float(i % 1013));
      std::vector<std::int64_t> indices;
      for (std::int64_t i = 0; i < outer * chosen * inner; ++i)
        indices.push_back(i * (i + 31) % 7919 % (size + on_cuda()));
      const Tensor index = Tensor::from(indices, {outer, chosen, inner});
      const Floats got = gather(Tensor::from(values, shape), 1, index).to_vector<float>();
      std::vector<float> sums(values.size());
      bool right = true;
      const auto place = [&](std::int64_t o, std::int64_t k, std::int64_t i, std::int64_t n) {
        return static_cast<std::size_t>((o * n + k) * inner + i);
      };
      Floats weights;
      for (std::size_t i = 0; i < indices.size(); ++i)
        weights.push_back(0.3f + 0.7f * float(i % 5));
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t k = 0; k < chosen; ++k)
          for (std::int64_t i = 0; i < inner; ++i) {
            const std::size_t at = place(o, k, i, chosen);
            const std::int64_t from = indices[at];
            if (from == size) {
              right = right && std::isnan(got[at]);
            } else {
              right = right && got[at] == values[place(o, from, i, size)];
              sums[place(o, from, i, size)] += weights[at];
            }
          }
      CHECK(right);
      const Tensor added =
          scatter_add(Tensor::zeros(shape), 1, index, Tensor::from(weights, index.shape()));
      CHECK(added.to_vector<float>() == sums);
    }
}

TEST_CASE("indices that make no sense are refused, in words") {
  const Tensor x = table(2, 3), indices = Tensor::from({0, 1});
  CHECK_ERROR(index_select(x, x), ShapeError, "[index_select] indices must be i32 or i64");
  CHECK_ERROR(index_select(x, indices, 2), ShapeError, "[index_select] there is no axis 2");
  CHECK_ERROR(index_select(x, indices, -3), ShapeError, "[index_select] there is no axis -3");
  CHECK_ERROR(index_select(x, Tensor::zeros({1, 1, 1, 1, 1, 1}, DType::i32)), ShapeError,
              "more than 6 axes");
  CHECK_ERROR(embedding(Tensor::zeros({3}), indices), ShapeError, "[embedding] takes a table");
  CHECK_ERROR(index_add(x, indices, Tensor::zeros({3, 3})), ShapeError,
              "[index_add] the values have not the shape of the parts");
  CHECK_ERROR(gather(x, 1, x), ShapeError, "[gather] indices must be i32 or i64");
  CHECK_ERROR(gather(x, 2, indices), ShapeError, "[gather] there is no axis 2");
  CHECK_ERROR(
      gather(x, 1, indices), ShapeError,
      "[gather] indices must have the shape of x but for axis 1; inputs are f32[2, 3], i32[2]");
  CHECK_ERROR(gather(x, 0, Tensor::zeros({5, 2}, DType::i32)), ShapeError, "but for axis 0");
  CHECK_ERROR(scatter_add(x, 0, Tensor::zeros({1, 3}, DType::i32), x), ShapeError,
              "updates must have the shape of the indices");
  CHECK_ERROR(one_hot(x, 3), ShapeError, "[one_hot] indices must be i32 or i64");
  CHECK_ERROR(one_hot(indices, -1), ShapeError, "[one_hot] takes a number of classes from 0");
  CHECK_ERROR(one_hot(indices, 3, DType::i32), ShapeError, "[one_hot] gives f32");
}

}  // namespace ebb::tests
