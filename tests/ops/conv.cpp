// Convolutions of more filters, channels and places than are multiplied at once.
#include "ebb/core/ops/conv.h"

#include <cmath>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/ops/arithmetic.h"
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
      {{3, 4, 30, 21}, {6, 4, 3, 3}, {.padding = {1, 1}}},
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

}  // namespace ebb::tests
