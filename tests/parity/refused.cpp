// Calls that NumPy, PyTorch and TensorFlow silently convert, clamp or broadcast and that ebb
// refuses; random numbers.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

Tensor f32() { return Tensor::from({1.f, 2.f, 3.f}); }
Tensor i32() { return Tensor::from({7, -7, 3}); }

bool all_within(const Tensor& x, double low, double high) {
  for (const double value : numbers(x))
    if (!(low <= value && value < high)) return false;
  return true;
}

}  // namespace

EBB_PROGRAM("i + x, f32 + f64") {
  CHECK_ERROR(i32() + f32(), ShapeError, "takes inputs of one dtype (cast() converts)");
  CHECK_ERROR(f32() + cast(f32(), DType::f64), ShapeError, "one dtype");
  CHECK(numbers(cast(i32(), DType::f32) + f32()) == std::vector<double>{8, -5, 6});
  CHECK(numbers((i32() > arange(3)) * f32()) == std::vector<double>{1, 0, 3});
}
EBB_PROGRAM("i * 2.5, i / 2") {
  CHECK_ERROR(i32() * 2.5, ShapeError, "2.5");
  CHECK_ERROR(i32() / i32(), ShapeError, "[divide]");
  CHECK(numbers(floor_divide(i32(), 2)) == std::vector<double>{3, -4, 1});
}
EBB_PROGRAM("x[1:100]") {
  CHECK_ERROR(slice(f32(), 1, 100), ShapeError, "[slice]");
  CHECK(numbers(slice(f32(), 1, kEnd)) == std::vector<double>{2, 3});
}
EBB_PROGRAM("x[7], torch.index_select(x, 0, i) out of range") {
  CHECK_ERROR(f32()[7], ShapeError, "[select]");
  CHECK_ERROR(index_select(f32(), Tensor::from({1, 7}), 0, {.check_labels = true}), Error,
              "index 1 is 7, out of range");
}
EBB_PROGRAM("if x.any(): .., while x < y:") {
  // A Tensor is no bool: `if (f32() < 2)` does not compile.
  static_assert(!std::is_convertible_v<Tensor, bool>);
  CHECK(any(f32() < 2).item<bool>());
  CHECK_ERROR(any(f32()), ShapeError, "[any]");
}
EBB_PROGRAM("x.squeeze(0) of another size") {
  CHECK_ERROR(squeeze(f32(), 0), ShapeError, "[squeeze]");
}
EBB_PROGRAM("torch.chunk(x, 2) of 3 elements") {
  CHECK_ERROR(chunk(f32(), 2), ShapeError, "");
  CHECK(split(f32(), {2, 1})[0].size(0) == 2);
}
EBB_PROGRAM("i.float().mean(), np.mean(i)") {
  CHECK_ERROR(mean(i32()), ShapeError, "[mean]");
  CHECK(mean(cast(i32(), DType::f32)).item<float>() == 1);
  CHECK(mean(f32() > 2.5).item<double>() == Approx(1.0 / 3));
}
EBB_PROGRAM("tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 2, 4])") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, -1, 8}), y = unflatten(x, -1, {2, 4});
  CHECK(Session(graph).run(y, {{x, ones({3, 5, 8})}}).shape() == Shape{3, 5, 2, 4});
  CHECK_ERROR(reshape(x, {0, 0, 2, 4}), ShapeError, "unflatten");
}
EBB_PROGRAM("x.amax(0) of nothing, np.max([])") {
  CHECK_ERROR(max(Tensor::zeros({0}), 0), ShapeError, "[max]");
}
EBB_PROGRAM("F.mse_loss(x, y) of [3] and [3, 1]") {
  CHECK_ERROR(mse(f32(), unsqueeze(f32(), 1)), ShapeError, "");
}

EBB_PROGRAM("torch.rand(n), torch.randn(n), torch.randint(0, 10, (n,))") {
  CHECK(all_within(uniform({100}), 0, 1));
  CHECK(normal({100}).dtype() == DType::f32);
  const Tensor dice = randint(0, 10, {100});
  CHECK(dice.dtype() == DType::i64);
  CHECK(all_within(dice, 0, 10));
}
EBB_PROGRAM("torch.bernoulli(p), torch.rand_like(x), torch.randn_like(x)") {
  CHECK(numbers(bernoulli({5}, {.probability = 1})) == std::vector<double>(5, 1));
  CHECK(all_within(uniform_like(f32()), 0, 1));
  CHECK(normal_like(f32()).shape() == Shape{3});
}
EBB_PROGRAM("torch.manual_seed(7), np.random.seed(7)") {
  set_seed(Seed{7});
  const std::vector<double> first = numbers(normal({4})), second = numbers(normal({4}));
  set_seed(Seed{7});
  CHECK(numbers(normal({4})) == first);
  CHECK(first != second);
}
EBB_PROGRAM("torch.randperm(n), torch.multinomial(p, 1)") {
  std::vector<double> order = numbers(permutation(6));
  std::sort(order.begin(), order.end());
  CHECK(order == std::vector<double>{0, 1, 2, 3, 4, 5});
  const Tensor p = Tensor::from({0.f, 1.f, 0.f});
  CHECK(categorical(log(p)).item<std::int64_t>() == 1);
}
EBB_PROGRAM(
    "torch.distributions.Categorical(logits=x / t).sample(), tf.random.categorical(x / t, 1)") {
  const Tensor x = Tensor::from({{1.f, 3.f, 2.f}, {5.f, 4.f, 0.f}});
  CHECK(numbers(categorical(x, 0)) == std::vector<double>{1, 0});
  CHECK(numbers(categorical(x, 1e-3)) == std::vector<double>{1, 0});
}
EBB_PROGRAM("F.dropout(x, p)") {
  const Tensor x = Tensor::full({200}, 3);
  int kept = 0;
  for (const double y : numbers(dropout(x, 0.25, Phase::training))) {
    CHECK((y == 0 || y == 4));
    kept += y != 0;
  }
  CHECK(kept > 100);
  CHECK(kept < 200);
}
EBB_PROGRAM("tf1.random_uniform([n]), tf1.random_normal([n])") {
  Graph graph;
  const Tensor draw = uniform(graph, {8}), noise = normal(graph, {8});
  Session session(graph);
  const std::vector<double> first = numbers(session.run(draw));
  CHECK(numbers(session.run(draw)) != first);
  CHECK(session.run(noise).shape() == Shape{8});
}
EBB_PROGRAM("tf1.set_random_seed(7)") {
  Graph graph;
  const Tensor draw = uniform(graph, {8});
  Session one(graph, {.seed = Seed{7}}), other(graph, {.seed = Seed{7}});
  CHECK(numbers(one.run(draw)) == numbers(other.run(draw)));
}
EBB_PROGRAM("tf1.nn.dropout(x, keep_prob)") {
  const double keep_prob = 0.75;
  const Tensor x = Tensor::full({64}, 3);
  for (const double y : numbers(dropout(x, 1 - keep_prob, Phase::training)))
    CHECK((y == 0 || y == 4));
}

}  // namespace ebb::tests::parity
