// Initial values of parameters.
#include "ebb/core/parameters/initializer.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

double mean_of(const Doubles& values) { return mean(Tensor::from(values)).item<double>(); }
double deviation_of(const Doubles& values) {
  return standard_deviation(Tensor::from(values)).item<double>();
}

Doubles initial(const Initializer& initializer, Seed seed, std::string_view name,
                std::int64_t count) {
  Doubles values(static_cast<std::size_t>(count));
  detail::draw_initial_values(initializer, seed, name, {DType::f64, {count}}, values.data());
  return values;
}

}  // namespace

TEST_CASE("Initial values depend on seed and name alone, and f32 ones are the f64 ones rounded",
          "[host]") {
  const Initializer normal = initializers::normal(0, 1);
  const Doubles values = initial(normal, {3}, "dense.weight", 100);
  CHECK(initial(normal, {3}, "dense.weight", 100) == values);
  CHECK(initial(normal, {4}, "dense.weight", 100) != values);
  CHECK(initial(normal, {3}, "dense.bias", 100) != values);
  const Doubles longer = initial(normal, {3}, "dense.weight", 200);
  CHECK(std::equal(values.begin(), values.end(), longer.begin()));
  std::vector<float> single(100);
  detail::draw_initial_values(normal, {3}, "dense.weight", {DType::f32, {100}}, single.data());
  for (std::size_t i = 0; i < single.size(); ++i) CHECK(single[i] == static_cast<float>(values[i]));
}

TEST_CASE("Uniform initial values of f32 are rounded to no open end", "[host]") {
  const float end = 1 + 0x1p-22f;
  std::vector<float> values(1000);
  detail::draw_initial_values(initializers::uniform(1, end), {3}, "w", {DType::f32, {1000}},
                              values.data());
  CHECK(*std::min_element(values.begin(), values.end()) == 1);
  CHECK(*std::max_element(values.begin(), values.end()) == std::nextafter(end, 0.f));
}

TEST_CASE("Initial values have the mean and variance of their formula, uniform as normal",
          "[host]") {
  constexpr std::int64_t kCount = 100'000;
  struct Case {
    Initializer initializer;
    double variance;
    bool is_uniform;
    double mean = 0;
  };
  const Case cases[] = {{initializers::glorot_uniform(30, 20), 2.0 / 50, true},
                        {initializers::glorot_normal(30, 20), 2.0 / 50, false},
                        {initializers::he_uniform(30), 2.0 / 30, true},
                        {initializers::he_normal(30), 2.0 / 30, false},
                        {initializers::lecun_uniform(30), 1.0 / 30, true},
                        {initializers::lecun_normal(30), 1.0 / 30, false},
                        {initializers::uniform(-2, 4), 3, true, 1},
                        {initializers::normal(5, 0.5), 0.25, false, 5}};
  for (const auto& [initializer, variance, is_uniform, mean] : cases) {
    const Doubles values = initial(initializer, {1}, "w", kCount);
    const double deviation = std::sqrt(variance);
    // Mean and deviation are within five standard errors.
    CHECK(std::abs(mean_of(values) - mean) < 5 * deviation / std::sqrt(kCount));
    CHECK(std::abs(deviation_of(values) / deviation - 1) < 5 / std::sqrt(2.0 * kCount));
    double fourth = 0;
    for (const double value : values) fourth += std::pow((value - mean) / deviation, 4) / kCount;
    CHECK(std::abs(fourth - (is_uniform ? 1.8 : 3)) < 0.2);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK((*high - mean < std::sqrt(3) * deviation) == is_uniform);
    CHECK((mean - *low <= std::sqrt(3) * deviation) == is_uniform);
  }
  CHECK(initial(initializers::ones(), {1}, "w", 2) == Doubles{1, 1});
  CHECK(initial(initializers::constant(1.5), {1}, "w", 2) == Doubles{1.5, 1.5});
}

TEST_CASE("A truncated normal ends two deviations from its mean", "[host]") {
  constexpr std::int64_t kCount = 100'000;
  const Doubles values = initial(initializers::truncated_normal(3, 0.5), {1}, "w", kCount);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CHECK((*low >= 2 && *low < 2.01 && *high <= 4 && *high > 3.99));
  CHECK(std::abs(mean_of(values) - 3) < 5 * 0.44 / std::sqrt(kCount));
  // Variance of a normal cut off at two deviations: 1 - 2 * 2 phi(2) / (2 Phi(2) - 1), with phi and
  // Phi the normal density and distribution.
  const double variance =
      1 - 4 * std::exp(-2) / std::sqrt(2 * std::acos(-1)) / std::erf(std::sqrt(2));
  CHECK(std::abs(deviation_of(values) / (0.5 * std::sqrt(variance)) - 1) < 0.01);
  // Values of the normal within two deviations are kept as they are; only the others are drawn
  // again.
  const Doubles normal = initial(initializers::normal(3, 0.5), {1}, "w", kCount);
  std::size_t same = 0;
  for (std::size_t i = 0; i < values.size(); ++i) same += values[i] == normal[i];
  CHECK(std::abs(static_cast<double>(same) / kCount - std::erf(std::sqrt(2))) < 0.005);
}

TEST_CASE("Orthogonal values have rows or columns of one length at right angles", "[host]") {
  const double gain = 1.5;
  for (const Shape& shape : {Shape{7, 5}, Shape{5, 7}, Shape{6, 6}, Shape{4, 3, 2, 2}, Shape{1, 9},
                             Shape{9, 1}, Shape{1, 1}, Shape{40, 2, 9}, Shape{0, 3}, Shape{3, 0}}) {
    INFO(shape.to_string());
    Doubles values(static_cast<std::size_t>(shape.elements()));
    detail::draw_initial_values(initializers::orthogonal(gain), {3}, "w", {DType::f64, shape},
                                values.data());
    if (values.empty()) continue;
    const auto rows = static_cast<std::size_t>(shape[0]), columns = values.size() / rows;
    const auto product = [&](std::size_t i, std::size_t j) {
      double sum = 0;
      for (std::size_t k = 0; k < std::max(rows, columns); ++k)
        sum += rows <= columns ? values[i * columns + k] * values[j * columns + k]
                               : values[k * columns + i] * values[k * columns + j];
      return sum;
    };
    for (std::size_t i = 0; i < std::min(rows, columns); ++i)
      for (std::size_t j = 0; j < std::min(rows, columns); ++j)
        CHECK(std::abs(product(i, j) - (i == j ? gain * gain : 0)) < 1e-13);
    std::vector<float> single(values.size());
    detail::draw_initial_values(initializers::orthogonal(gain), {3}, "w", {DType::f32, shape},
                                single.data());
    for (std::size_t i = 0; i < single.size(); ++i)
      CHECK(single[i] == static_cast<float>(values[i]));
  }
  // The matrices are evenly distributed: the first element of a 2 x 2 is the cosine of any angle,
  // with mean 0 and mean square 1 / 2, and the determinant is as often 1 as -1.
  double sum = 0, squares = 0, determinants = 0;
  constexpr int kMatrices = 4000;
  for (std::uint64_t seed = 0; seed < kMatrices; ++seed) {
    double m[4];
    detail::draw_initial_values(initializers::orthogonal(), {seed}, "w", {DType::f64, {2, 2}}, m);
    sum += m[0] / kMatrices;
    squares += m[0] * m[0] / kMatrices;
    determinants += (m[0] * m[3] - m[1] * m[2]) / kMatrices;
  }
  CHECK(std::abs(sum) < 0.05);
  CHECK(std::abs(squares - 0.5) < 0.03);
  CHECK(std::abs(determinants) < 0.08);
}

TEST_CASE("Orthogonal values of many rows are at right angles to the last digits", "[host]") {
  constexpr std::size_t kRows = 64;  // orthogonalised once, three to ten times as far off
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    Doubles m(kRows * kRows);
    detail::draw_initial_values(initializers::orthogonal(), {seed}, "w", {DType::f64, {64, 64}},
                                m.data());
    double worst = 0;
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = i == j ? -1 : 0;
        for (std::size_t k = 0; k < kRows; ++k) sum += m[i * kRows + k] * m[j * kRows + k];
        worst = std::max(worst, std::abs(sum));
      }
    CHECK(worst < 2e-15);
  }
}

TEST_CASE("Orthogonal values are those of a matrix, in both modes") {
  const Parameters eager(Device::cpu(), Seed{1});
  CHECK_ERROR(eager.declare("bias", {3}, initializers::orthogonal()), ShapeError,
              "\"bias\" is f32[3]: orthogonal values need two axes or more");
  CHECK_ERROR(eager.declare("wild", {3, 4}, initializers::orthogonal(std::nan(""))), Error,
              "\"wild\" cannot start orthogonal with a gain of nan");
  const Tensor weight = eager.declare("weight", {3, 4}, initializers::orthogonal());
  Graph graph;
  const Parameters symbolic(graph, Seed{1});
  const Tensor variable = symbolic.declare("weight", {3, 4}, initializers::orthogonal());
  Session session(graph);
  session.initialize();
  CHECK(session.value(variable).to_vector<float>() == weight.to_vector<float>());
}

TEST_CASE("The first initial values of a seed are what they have always been", "[host]") {
  // Expected values are from tests/core/initial_values.py, which draws them with integers of any
  // size.
  const Doubles uniform = initial(initializers::uniform(0, 1), {7}, "hidden.weight", 4);
  const Doubles expected = {0.08577840746208332, 0.3862350197480978, 0.16701123403677098,
                            0.3325304715874624};
  CHECK(uniform == expected);
}

}  // namespace ebb::tests
