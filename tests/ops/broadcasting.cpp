// Shapes at random, against the rules written down plainly.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"

namespace ebb::tests::broadcasting {
namespace {

using Values = std::vector<double>;
using Index = std::vector<std::int64_t>;

struct Array {
  Shape shape;
  Values values;
};

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
    Array result{shape, Values(static_cast<std::size_t>(shape.elements()))};
    for (double& value : result.values) value = 0.5 + static_cast<double>(below(1000)) / 1000;
    return result;
  }

 private:
  std::mt19937_64 engine_{20240607};
};

// NumPy's rule: from the right; sizes are equal, or one of them is 1 or missing.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape out;
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

template <class Body>
void for_each_index(const Shape& shape, const Body& body) {
  Index index(static_cast<std::size_t>(shape.rank()));
  for (std::int64_t n = 0; n < shape.elements(); ++n) {
    std::int64_t rest = n;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    body(static_cast<std::size_t>(n), index);
  }
}

// The position in an array of `shape` that `index` of a larger shape reads.
std::size_t position(const Shape& shape, const Index& index) {
  std::int64_t at = 0;
  const int missing = static_cast<int>(index.size()) - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis)
    at =
        at * shape[axis] + (shape[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis + missing)]);
  return static_cast<std::size_t>(at);
}

// A random shape of sizes 0 to 4, and one that broadcasts with it.
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

template <class T, class Apply, class Reference>
void check_pair(const Array& a, const Array& b, const Apply& apply, const Reference& reference) {
  const Tensor computed = apply(tensor<T>(a), tensor<T>(b));
  const Shape shape = broadcast(a.shape, b.shape);
  REQUIRE(computed.shape() == shape);
  std::vector<T> expected(static_cast<std::size_t>(shape.elements()));
  for_each_index(shape, [&](std::size_t n, const Index& index) {
    expected[n] = reference(static_cast<T>(a.values[position(a.shape, index)]),
                            static_cast<T>(b.values[position(b.shape, index)]));
  });
  CHECK(computed.to_vector<T>() == expected);
}

}  // namespace

TEST_CASE("Pointwise operators broadcast as NumPy does") {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const auto shapes = broadcastable(random);
    const Array a = random.array(shapes.first), b = random.array(shapes.second);
    INFO(a.shape.to_string() << " and " << b.shape.to_string());
    const auto check = [&](auto type) {
      using T = decltype(type);
      check_pair<T>(
          a, b, [](const Tensor& x, const Tensor& y) { return x + y; }, std::plus<T>());
      check_pair<T>(
          a, b, [](const Tensor& x, const Tensor& y) { return x - y; }, std::minus<T>());
      check_pair<T>(
          a, b, [](const Tensor& x, const Tensor& y) { return x * y; }, std::multiplies<T>());
      check_pair<T>(
          a, b, [](const Tensor& x, const Tensor& y) { return x / y; }, std::divides<T>());
    };
    check(float{});
    check(double{});
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
    if (options.axes.empty() && a.shape.rank() > 0) continue;  // that would mean all of them
    Values expected(static_cast<std::size_t>(kept.elements()));
    for_each_index(a.shape, [&](std::size_t n, const Index& index) {
      expected[position(kept, index)] += a.values[n];
    });
    INFO(a.shape.to_string() << " to " << kept.to_string());
    const Tensor sums = sum(tensor<double>(a), options);
    const Tensor means = mean(tensor<double>(a), options);
    REQUIRE(sums.shape() == (options.keep ? kept : small));
    REQUIRE(means.shape() == sums.shape());
    const Values sum_values = sums.to_vector<double>(), mean_values = means.to_vector<double>();
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

TEST_CASE("sum_like undoes what broadcasting repeated") {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const auto shapes = broadcastable(random);
    const Array a = random.array(shapes.first);
    const Shape shape = broadcast(shapes.first, shapes.second);
    const Array large = random.array(shape);
    Values expected(a.values.size());
    for_each_index(shape, [&](std::size_t n, const Index& index) {
      expected[position(a.shape, index)] += large.values[n];
    });
    INFO(shape.to_string() << " to " << a.shape.to_string());
    const Tensor computed = sum_like(tensor<double>(large), tensor<double>(a));
    REQUIRE(computed.shape() == a.shape);
    const Values values = computed.to_vector<double>();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(is_near(values[i], expected[i], 1e-14));
    // And expanding repeats it again.
    const Tensor expanded = detail::expand_like(computed, tensor<double>(large));
    REQUIRE(expanded.shape() == shape);
    const Values repeated = expanded.to_vector<double>();
    for_each_index(shape, [&](std::size_t n, const Index& index) {
      CHECK(repeated[n] == values[position(a.shape, index)]);
    });
  }
}

}  // namespace ebb::tests::broadcasting
