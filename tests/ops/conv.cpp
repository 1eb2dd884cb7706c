// Convolutions of more filters, channels and places than are multiplied at once; pools of one axis.
#include "ebb/core/ops/conv.h"

#include <cmath>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

Tensor filled(const Shape& shape, std::int64_t step) {
  Doubles values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((i * step + i / 53) % 23 - 11));
  return Tensor::from(values, shape);
}

}  // namespace

TEST_CASE("convolutions of any size, and their gradients, are those of plain loops") {
  const struct {
    Shape x, weights;
    Conv2dOptions options;
  } cases[] = {
      {{2, 4, 31, 37}, {6, 4, 3, 3}, {.padding = {1, 1}}},
      {{2, 6, 25, 26}, {70, 3, 2, 5}, {.stride = {2, 3}, .dilation = {3, 1}, .groups = 2}},
      {{2, 70, 6, 7}, {5, 70, 1, 1}, {}},
      {{2, 3, 6, 5}, {4, 3, 1, 1}, {.padding = {0, 2}}},
      {{2, 3, 6, 5}, {4, 3, 1, 1}, {.padding = {1, 0}}},
      {{2, 3, 6, 5}, {4, 3, 1, 1}, {.stride = {1, 2}}},
      {{2, 3, 6, 5}, {4, 3, 1, 1}, {.stride = {2, 1}}},
      {{1, 40, 9, 8}, {3, 40, 3, 3}, {.stride = {2, 2}, .padding = {2, 0}}},
  };
  for (const auto& [x_shape, w_shape, options] : cases) {
    CAPTURE(x_shape.to_string(), w_shape.to_string());
    const Tensor x = filled(x_shape, 7).with_grad(), w = filled(w_shape, 5).with_grad(),
                 b = filled({w_shape[0]}, 3).with_grad();
    const Tensor y = conv2d(x, w, b, options);
    const Shape& shape = y.shape();
    const Tensor dy = filled(shape, 9);
    const Tensors got = gradients(sum(y * dy), {x, w, b});
    const Doubles xs = x.to_vector<double>(), ws = w.to_vector<double>(),
                  bs = b.to_vector<double>(), ds = dy.to_vector<double>();
    Doubles ys(ds.size()), dx(xs.size()), dw(ws.size()), db(bs.size());
    const std::int64_t filters = w_shape[0] / options.groups;
    const auto place = [](const Shape& s, std::int64_t i, std::int64_t j, std::int64_t k,
                          std::int64_t l) {
      return static_cast<std::size_t>(((i * s[1] + j) * s[2] + k) * s[3] + l);
    };
    for (std::int64_t n = 0; n < shape[0]; ++n)
      for (std::int64_t o = 0; o < shape[1]; ++o)
        for (std::int64_t i = 0; i < shape[2]; ++i)
          for (std::int64_t j = 0; j < shape[3]; ++j) {
            const std::size_t at = place(shape, n, o, i, j);
            ys[at] = bs[static_cast<std::size_t>(o)];
            db[static_cast<std::size_t>(o)] += ds[at];
            for (std::int64_t c = 0; c < w_shape[1]; ++c)
              for (std::int64_t k = 0; k < w_shape[2]; ++k)
                for (std::int64_t l = 0; l < w_shape[3]; ++l) {
                  const std::int64_t row = i * options.stride.height - options.padding.height +
                                           k * options.dilation.height,
                                     column = j * options.stride.width - options.padding.width +
                                              l * options.dilation.width;
                  if (row < 0 || row >= x_shape[2] || column < 0 || column >= x_shape[3]) continue;
                  const std::size_t from = place(x_shape, n, o / filters * w_shape[1] + c, row,
                                                 column),
                                    by = place(w_shape, o, c, k, l);
                  ys[at] += xs[from] * ws[by];
                  dx[from] += ds[at] * ws[by];
                  dw[by] += ds[at] * xs[from];
                }
          }
    // Exact: they are whole numbers.
    CHECK(y.to_vector<double>() == ys);
    CHECK(got[0].to_vector<double>() == dx);
    CHECK(got[1].to_vector<double>() == dw);
    CHECK(got[2].to_vector<double>() == db);
  }
}

TEST_CASE("what no kernel reaches is refused") {
  const Tensor x = Tensor::zeros({2, 3, 4, 5});
  CHECK_ERROR(conv2d(x, Tensor::zeros({1, 3, 0, 2})), ShapeError,
              "[conv2d] takes a kernel of at least one element");
  CHECK_ERROR(conv2d(x, Tensor::zeros({1, 3, 5, 1})), ShapeError,
              "[conv2d] the kernel is higher than the images, padding and all");
  CHECK(conv2d(x, Tensor::zeros({1, 3, 4, 5})).shape() == Shape{2, 1, 1, 1});
  CHECK_ERROR(max_pool2d(Tensor::zeros({1, 0, 4}), {.kernel = 2, .padding = 1}), ShapeError,
              "[max_pool2d] the kernel is higher than the images");
  CHECK_ERROR(avg_pool1d(Tensor::zeros({1, 0}), {.kernel = 2, .padding = 1}), ShapeError,
              "[avg_pool1d] the kernel is longer than x, padding and all");
}

TEST_CASE("pools of one axis are those of images of height 1, a kernel apart unless told") {
  const Tensor x = Tensor::from({{1.f, 5.f, 2.f, 4.f, 3.f, 0.f, 6.f}});
  const auto values = [](const Tensor& y) { return y.to_vector<float>(); };
  using Floats = std::vector<float>;
  CHECK(values(max_pool1d(x, {.kernel = 3})) == Floats{5, 4});
  CHECK(values(max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1})) == Floats{5, 5, 4, 6});
  CHECK(values(avg_pool1d(x, {.kernel = 2})) == Floats{3, 3, 1.5});
  CHECK(values(avg_pool1d(x, {.kernel = 2, .stride = 3, .padding = 1})) == Floats{0.5, 3, 3});
  CHECK(
      values(avg_pool1d(x, {.kernel = 2, .stride = 3, .padding = 1, .count_include_pad = false})) ==
      Floats{1, 3, 3});
}

}  // namespace ebb::tests
