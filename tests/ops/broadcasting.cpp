// Broadcasting and reductions of random shapes, against the references.
#include <algorithm>
#include <random>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests::broadcasting {
namespace {

class Random {
 public:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_);
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

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

}  // namespace

TEST_CASE("Operators of two tensors broadcast as NumPy does") {
  Random random;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Sample& sample : all_samples(dtype)) {
      if (!sample.of_two || !sample.any_shape) continue;
      INFO(sample.name);
      for (int round = 0; round < 10; ++round) {
        const auto [a, b] = broadcastable(random);
        const std::vector<SampleInput> inputs = {{a, sample.inputs[0].values},
                                                 {b, sample.inputs[1].values}};
        CHECK(unlike_references(inputs, dtype, sample.call, 1) == "");
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
    ReduceOptions options{.keep = random.one_in(2)};
    const bool all = random.one_in(4);
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (all || random.one_in(2))
        options.axes.push_back(random.one_in(2) ? axis : axis - shape.rank());
    const auto call = EBB_CALL(sum(in[0], options), mean(in[0], options));
    for (const DType dtype : {DType::f32, DType::f64})
      CHECK(unlike_references({{shape, Values::positive}}, dtype, call, 1) == "");
  }
}

TEST_CASE("sum_like undoes what broadcasting repeated, and expand_as repeats it again") {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const auto [small, other] = broadcastable(random);
    const auto call = EBB_CALL(sum_like(in[0], in[1]), expand_as(in[1], in[0]));
    CHECK(unlike_references({{broadcast(small, other)}, {small}}, DType::f64, call, 1) == "");
  }
}

}  // namespace ebb::tests::broadcasting
