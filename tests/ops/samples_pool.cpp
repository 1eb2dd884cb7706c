#include <cmath>

#include "ebb/core/kernels/pool.h"
#include "ebb/core/ops/pool.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Sample sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
              const PoolAttributes& attributes) {
  Sample sample = sample_of(op, how, std::move(inputs), applying(op, attributes));
  sample.any_shape = op.infer == avg_pool_op.infer;
  return sample;
}

// Calls body(element of y, elements of x in its window, size of the window with padding).
template <class Body>
void for_each_window(const Shape& x, const Shape& y, const PoolAttributes& of, const Body& body) {
  for_each_index(y, [&](const Index& place) {
    const std::size_t row = place.size() - 2, column = place.size() - 1;
    std::vector<std::int64_t> pixels;
    std::int64_t padded = 0;
    for (std::int64_t i = 0; i < of.kernel[0]; ++i)
      for (std::int64_t j = 0; j < of.kernel[1]; ++j, ++padded) {
        Index pixel = place;
        pixel[row] = place[row] * of.stride[0] - of.padding[0] + i;
        pixel[column] = place[column] * of.stride[1] - of.padding[1] + j;
        if (pixel[row] >= 0 && pixel[row] < x[-2] && pixel[column] >= 0 && pixel[column] < x[-1])
          pixels.push_back(position(x, pixel));
      }
    body(position(y, place), pixels, padded);
  });
}

std::int64_t largest(const Array& x, const std::vector<std::int64_t>& pixels) {
  std::int64_t best = pixels[0];
  for (const std::int64_t pixel : pixels) {
    if (std::isnan(x[best])) break;
    if (std::isnan(x[pixel]) || x[pixel] > x[best]) best = pixel;
  }
  return best;
}

using Pixels = std::vector<std::int64_t>;

Arrays select_reference(const Application& a) {
  const Array &from = a[0], &x = a.inputs.back();
  Array y(a.outputs[0].shape);
  for_each_window(x.shape, y.shape, a.attribute<PoolAttributes>(),
                  [&](std::int64_t to, const Pixels& pixels, std::int64_t) {
                    y[to] = from[largest(x, pixels)];
                  });
  return {y};
}

double count_of(const PoolAttributes& of, const Pixels& pixels, std::int64_t padded) {
  return static_cast<double>(of.count_include_pad != 0 ? padded
                                                       : static_cast<std::int64_t>(pixels.size()));
}

}  // namespace

void pool_family(std::vector<Sample>& samples, References& references, DType) {
  const auto add = [&](const char* how, const Shape& x, const Shape& y,
                       const PoolAttributes& attributes) {
    samples.push_back(sample(max_pool_op, how, {{x}}, attributes));
    samples.push_back(sample(max_pool_select_op, how, {{x}, {x}}, attributes));
    samples.push_back(sample(max_pool_backward_op, how, {{y}, {x}}, attributes));
    for (const std::int64_t count_include_pad : {1, 0}) {
      PoolAttributes means = attributes;
      means.count_include_pad = count_include_pad;
      const std::string name = std::string(how) + (count_include_pad == 1 ? "" : ", without pad");
      samples.push_back(sample(avg_pool_op, name, {{x}}, means));
      samples.push_back(sample(avg_pool_backward_op, name, {{y}, {x}}, means));
    }
  };
  add("apart", {kOpen, 2, 4, 5}, {kOpen, 2, 2, 2}, {.kernel = {2, 2}, .stride = {2, 2}});
  add("overlapping, padded", {2, kOpen, 4, 3}, {2, kOpen, 2, 4},
      {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  samples.push_back(
      of_any_shape(max_pool_op, "along one axis", {{{kOpen, 6}}},
                   EBB_CALL(max_pool1d(in[0], {.kernel = 3, .stride = 2, .padding = 1}))));
  samples.push_back(
      of_any_shape(avg_pool_op, "along one axis", {{{kOpen, 6}}}, EBB_CALL(avg_pool1d(in[0]))));

  references.add(max_pool_op, select_reference);
  references.add(max_pool_select_op, select_reference);
  references.add(max_pool_backward_op, [](const Application& a) -> Arrays {
    Array dx(a[1].shape);
    for_each_window(dx.shape, a[0].shape, a.attribute<PoolAttributes>(),
                    [&](std::int64_t y, const Pixels& pixels, std::int64_t) {
                      dx[largest(a[1], pixels)] += a[0][y];
                    });
    return {dx};
  });
  references.add(avg_pool_op, [](const Application& a) -> Arrays {
    const auto& of = a.attribute<PoolAttributes>();
    Array y(a.outputs[0].shape);
    for_each_window(a[0].shape, y.shape, of,
                    [&](std::int64_t to, const Pixels& pixels, std::int64_t padded) {
                      for (const std::int64_t pixel : pixels)
                        y[to] += a[0][pixel] / count_of(of, pixels, padded);
                    });
    return {y};
  });
  references.add(avg_pool_backward_op, [](const Application& a) -> Arrays {
    const auto& of = a.attribute<PoolAttributes>();
    Array dx(a[1].shape);
    for_each_window(dx.shape, a[0].shape, of,
                    [&](std::int64_t y, const Pixels& pixels, std::int64_t padded) {
                      for (const std::int64_t pixel : pixels)
                        dx[pixel] += a[0][y] / count_of(of, pixels, padded);
                    });
    return {dx};
  });
}

}  // namespace ebb::tests
