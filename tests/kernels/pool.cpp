#include "ebb/core/kernels/pool.h"

#include <cmath>

#include "ebb/tests/infinity.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Results of a pool and its gradient, window by window. Of small integers, so that sums are exact.
struct Pools {
  std::vector<double> largest, of_largest, means, of_means;

  Pools(const PoolLayout& of, const Values& x, const Values& dy)
      : of_largest(static_cast<std::size_t>(x.elements())), of_means(of_largest) {
    const std::int64_t width = of.size[1];
    for (std::int64_t plane = 0; plane < of.planes; ++plane)
      for (std::int64_t i = 0; i < of.places[0]; ++i)
        for (std::int64_t j = 0; j < of.places[1]; ++j) {
          const PoolRange rows = of.window(0, i), columns = of.window(1, j);
          std::int64_t best = -1;
          double sum = 0;
          for (std::int64_t row = rows.begin; row < rows.end; ++row)
            for (std::int64_t column = columns.begin; column < columns.end; ++column) {
              const std::int64_t at = (plane * of.size[0] + row) * width + column;
              const double value = x.at(at), most = best < 0 ? 0 : x.at(best);
              if (best < 0 || value > most || (std::isnan(value) && !std::isnan(most))) best = at;
              sum += value;
            }
          const double gradient = dy.at(static_cast<std::int64_t>(largest.size()));
          const auto count = static_cast<double>(of.count(i, j));
          largest.push_back(x.at(best));
          means.push_back(sum / count);
          of_largest[static_cast<std::size_t>(best)] += gradient;
          for (std::int64_t row = rows.begin; row < rows.end; ++row)
            for (std::int64_t column = columns.begin; column < columns.end; ++column)
              of_means[static_cast<std::size_t>((plane * of.size[0] + row) * width + column)] +=
                  gradient / count;
        }
  }
};

bool same(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 0) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i)
    all = std::isnan(b[i]) ? std::isnan(a[i])
                           : std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]));
  return all;
}

}  // namespace

TEST_CASE("pools of rows of many windows have what each of the windows has") {
  Dice dice(5);
  for (const DType type : {DType::f32, DType::f64})
    for (const auto& [height, width] : {std::pair{2, 700}, {9, 5}, {4, 258}, {1, 1}})
      for (const std::int64_t kernel : {1, 2, 3, 5})
        for (const std::int64_t stride : {1, 2, 3})
          for (const std::int64_t padding : {0, 1, 2}) {
            const PoolAttributes attributes{.kernel = {std::min<std::int64_t>(kernel, 2), kernel},
                                            .stride = {1, stride},
                                            .padding = {0, padding},
                                            .count_include_pad = padding % 2};
            if (padding > kernel / 2 || attributes.kernel[0] > height ||
                kernel > width + 2 * padding)
              continue;
            CAPTURE(name(type), height, width, kernel, stride, padding);
            const Shape shape{2, height, width};
            const Shape places{2, height - attributes.kernel[0] + 1,
                               (width + 2 * padding - kernel) / stride + 1};
            const Values x = values(type, shape, [&](std::int64_t) {
              const std::int64_t value = dice.integer(-3, 4);
              return value == 4 ? kNaN64 : static_cast<double>(value);
            });
            const Values numbers = values(type, shape, [&](std::int64_t) {
              return static_cast<double>(dice.integer(-9, 9));
            });
            const Values dy = values(type, places, [&](std::int64_t) {
              return static_cast<double>(dice.integer(-9, 9));
            });
            const PoolLayout of(shape, places, attributes);
            const Pools with_nan(of, x, dy), expected(of, numbers, dy);
            const auto run = [&](Kernel kernel, std::vector<Values> inputs, const Shape& out) {
              return Call{.kernel = kernel,
                          .attributes = attributes,
                          .inputs = std::move(inputs),
                          .outputs = {{type, out}}}
                  .run()[0]
                  .list();
            };
            CHECK(same(run(cpu::max_pool, {x}, places), with_nan.largest));
            CHECK(same(run(cpu::max_pool_backward, {dy, x}, shape), with_nan.of_largest));
            CHECK(same(run(cpu::avg_pool, {numbers}, places), expected.means, 1e-6));
            CHECK(same(run(cpu::avg_pool_backward, {dy, numbers}, shape), expected.of_means, 1e-6));
          }
}
