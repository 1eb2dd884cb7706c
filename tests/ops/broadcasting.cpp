// Broadcasting and reductions of random shapes, against the references.
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests::broadcasting {
namespace {

bool is_near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

class Random {
 public:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_);
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  Array array(const Shape& shape) {
    Array result(shape);
    for (double& value : result.values) value = 0.5 + static_cast<double>(below(1000)) / 1000;
    return result;
  }

 private:
  std::mt19937_64 engine_{20240607};
};

// A random shape with sizes 0 to 4, and a second one that broadcasts with it.
std::pair<Shape, Shape> broadcastable(Random& random) {
  Shape full;
  for (auto rank = random.below(5); rank > 0; --rank)
    full.push_back(random.one_in(12) ? 0 : 1 + random.below(4));
  const auto part = [&](std::int64_t skip) {
    Shape shape;
    for (int axis = static_cast<int>(skip); axis < full.rank(); ++axis)
      shape.push_back(random.one_in(3) ? 1 : full[axis]);
    return shape;
  };
  const std::int64_t skip = random.below(full.rank() + 1);
  return random.one_in(2) ? std::pair(part(skip), part(0)) : std::pair(part(0), part(skip));
}

template <class T>
Tensor tensor(const Array& array) {
  return Tensor::from(std::vector<T>(array.values.begin(), array.values.end()), array.shape);
}

// Sums the elements of `large` that broadcasting pairs with the same element of `shape`.
std::vector<double> sums_of(const Array& large, const Shape& shape) {
  Array sums(shape);
  std::int64_t next = 0;
  for_each_index(large.shape,
                 [&](const Index& index) { sums[position(shape, index)] += large[next++]; });
  return sums.values;
}

}  // namespace

TEST_CASE("Operators of two tensors broadcast as NumPy does") {
  Random random;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Sample& sample : all_samples(dtype)) {
      if (!sample.of_two || !sample.any_shape) continue;
      const Attributes attributes = RecordedSample(sample, dtype, false).node().attributes;
      for (int round = 0; round < 10; ++round) {
        const auto shapes = broadcastable(random);
        const Array a = random.array(shapes.first), b = random.array(shapes.second);
        INFO(sample.name << " of " << a.shape.to_string() << " and " << b.shape.to_string());
        const Tensors inputs = dtype == DType::f32 ? Tensors{tensor<float>(a), tensor<float>(b)}
                                                   : Tensors{tensor<double>(a), tensor<double>(b)};
        CHECK(unlike_reference(*sample.op, inputs, attributes) == "");
      }
    }
}

TEST_CASE("Shapes that NumPy would not broadcast are refused") {
  Random random;
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    Shape a, b;
    for (auto rank = random.below(4); rank > 0; --rank) a.push_back(random.below(4));
    for (auto rank = random.below(4); rank > 0; --rank) b.push_back(random.below(4));
    bool fits = true;
    for (int i = -1; i >= -std::min(a.rank(), b.rank()); --i)
      fits = fits && (a[i] == b[i] || a[i] == 1 || b[i] == 1);
    INFO(a.to_string() << " and " << b.to_string());
    if (fits) {
      CHECK((Tensor::zeros(a) + Tensor::zeros(b)).shape() == broadcast(a, b));
    } else {
      CHECK_THROWS_AS(Tensor::zeros(a) + Tensor::zeros(b), ShapeError);
      ++refused;
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("Sums and means over any axes are those of a plain loop") {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Shape shape = broadcastable(random).second;
    if (round % 8 == 0 && shape.rank() > 0)  // rows or columns of several blocks and a rest
      shape.set(static_cast<int>(random.below(shape.rank())), 1 + random.below(700));
    const Array a = random.array(shape);
    ReduceOptions options{.keep = random.one_in(2)};
    Shape small, kept;
    double count = 1;
    const bool all = random.one_in(4);
    for (int axis = 0; axis < a.shape.rank(); ++axis) {
      const bool reduced = all || random.one_in(2);
      kept.push_back(reduced ? 1 : a.shape[axis]);
      if (!reduced) small.push_back(a.shape[axis]);
      if (!reduced) continue;
      count *= static_cast<double>(a.shape[axis]);
      options.axes.push_back(random.one_in(2) ? axis : axis - a.shape.rank());
    }
    if (options.axes.empty() && a.shape.rank() > 0) continue;  // no axes would mean all of them
    const std::vector<double> expected = sums_of(a, kept);
    INFO(a.shape.to_string() << " to " << kept.to_string());
    const Tensor sums = sum(tensor<double>(a), options);
    const Tensor means = mean(tensor<double>(a), options);
    REQUIRE(sums.shape() == (options.keep ? kept : small));
    REQUIRE(means.shape() == sums.shape());
    const auto sum_values = sums.to_vector<double>(), mean_values = means.to_vector<double>();
    const std::vector<float> single = sum(tensor<float>(a), options).to_vector<float>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(is_near(sum_values[i], expected[i], 1e-14));
      CHECK(is_near(static_cast<double>(single[i]), expected[i], 1e-6));
      if (count > 0)
        CHECK(is_near(mean_values[i], expected[i] / count, 1e-14));
      else
        CHECK(std::isnan(mean_values[i]));
    }
  }
}

TEST_CASE("sum_like undoes what broadcasting repeated, and expand_as repeats it again") {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const auto shapes = broadcastable(random);
    const Tensor small = tensor<double>(random.array(shapes.first)),
                 large = tensor<double>(random.array(broadcast(shapes.first, shapes.second)));
    INFO(large.shape().to_string() << " to " << small.shape().to_string());
    CHECK(unlike_reference(sum_like_op, {large, small}, {}) == "");
    CHECK(unlike_reference(expand_as_op, {small, large}, {}) == "");
  }
}

}  // namespace ebb::tests::broadcasting
