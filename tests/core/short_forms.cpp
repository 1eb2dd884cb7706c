// Short forms of longer calls.
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("x += y gives the handle another tensor, and writes to none") {
  Tensor x = Tensor::from({1.f, 2.f});
  const Tensor other = x;
  x += 1;
  x *= Tensor::from({3.f, 4.f});
  x -= x / 2;
  x /= 2;
  CHECK(x.to_vector<float>() == Floats{1.5f, 3});
  CHECK(other.to_vector<float>() == Floats{1, 2});
  Tensor total = Tensor::full({}, 0);
  const Tensor w = Tensor::from({2.f, 5.f}).with_grad();
  for (int i = 1; i <= 3; ++i) total += sum(w * i);
  total.backward();
  CHECK(w.grad().to_vector<float>() == Floats{6, 6});
  const auto wrong = [&] { x += Tensor::zeros({3}); };
  CHECK_ERROR(wrong(), ShapeError, line(__LINE__ - 1));
  CHECK(x.to_vector<float>() == Floats{1.5f, 3});
}

TEST_CASE("x[i] takes an index of any type, and one beyond x is refused by its line") {
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const std::size_t two = 2;
  CHECK(x[two].to_vector<float>() == Floats{5, 6});
  CHECK_ERROR(x[3], ShapeError, line(__LINE__));
  CHECK_THROWS_AS(x.size(2), ShapeError);
}

TEST_CASE("a shape is made from braces and from integers in a row") {
  const std::vector<std::int64_t> list = {2, 3};
  const std::vector<int> narrow = {2, 3};
  const std::array<std::size_t, 2> sizes = {2, 3};
  CHECK(zeros(list).shape() == Shape{2, 3});
  CHECK(Tensor::zeros(narrow).shape() == Shape{2, 3});
  CHECK(reshape(arange(6), sizes).shape() == Shape{2, 3});
  CHECK(ones(std::span(list).first(1)).shape() == Shape{2});
  CHECK(Tensor::from(Floats{1, 2, 3, 4}, std::vector{2, -1}).shape() == Shape{2, 2});
  CHECK(zeros(std::vector<std::int64_t>{}).rank() == 0);
  static_assert(!std::is_convertible_v<int, Shape> && !std::is_convertible_v<std::string, Shape> &&
                !std::is_convertible_v<std::wstring, Shape> &&
                !std::is_convertible_v<std::u32string, Shape> &&
                !std::is_convertible_v<std::array<bool, 2>, Shape> &&
                !std::is_convertible_v<std::vector<bool>, Shape> &&
                !std::is_convertible_v<std::vector<float>, Shape>);
  CHECK_ERROR(zeros(std::vector{2, -3}), ShapeError, "cannot be -3 " + line(__LINE__));
  CHECK_ERROR(zeros(std::vector(7, 1)), ShapeError, "at most 6 dimensions " + line(__LINE__));
  CHECK_ERROR(zeros(std::vector{std::numeric_limits<std::size_t>::max()}), ShapeError,
              "more elements than");
}

TEST_CASE("a loader shuffles by a seed, or where it is told to") {
  const DataSet data(arange(64, DType::f32), arange(64));
  const auto order = [&](const Shuffle& shuffle) {
    DataLoader loader(data, {.batch = 64, .shuffle = shuffle});
    return (*loader.begin()).target.to_vector<std::int64_t>();
  };
  CHECK(order(false) == arange(64).to_vector<std::int64_t>());
  CHECK(order({}) == order(false));
  CHECK(order(std::nullopt) == order(false));
  CHECK(order(std::optional<Seed>()) == order(false));
  CHECK(order(Seed{}) == order(Seed{0}));
  CHECK(order(true) != order(false));
  CHECK(order(std::optional(Seed{3})) == order(Seed{3}));
  static_assert(!std::is_convertible_v<int, Shuffle> && !std::is_convertible_v<int*, Shuffle>);
  DataLoader loader(data, {.shuffle = Seed{}});
  CHECK(loader.position().at("shuffle") == "0");
}

TEST_CASE("a gradient of one tensor is a list of one") {
  const Tensor x = Tensor::from({1.f, 2.f}).with_grad(), y = Tensor::from({3.f, 4.f}).with_grad();
  const Tensor loss = sum(x * y);
  const Tensors one = gradients(loss, x, {.retain_graph = true});
  REQUIRE(one.size() == 1);
  CHECK(one[0].to_vector<float>() == Floats{3, 4});
  CHECK(bit_equal(gradient(loss, x, {.retain_graph = true}), one[0]));
  CHECK(gradients(loss, {y}, {.retain_graph = true})[0].to_vector<float>() == Floats{1, 2});
  CHECK(gradients(loss, {x, y}, {.retain_graph = true}).size() == 2);
  CHECK(gradients(loss, {}).empty());
  CHECK_ERROR_HERE(gradients(loss, Tensor()), Error, "an input has no history");
  CHECK_ERROR_HERE(gradients(x * y, x), Error, "[gradients] takes a one-element tensor");
  CHECK_ERROR(gradient(x * y, x), Error, "[gradient] takes a one-element tensor");
  CHECK_ERROR(gradient(loss, Tensor()), Error, line(__LINE__));
}

TEST_CASE("parts with names, sums of many, one of each row and open shapes, in both modes") {
  const auto of = [](const Tensor& x, const Tensor& indices) {
    const auto [a, b] = chunk<2>(x, -1);
    const auto [c, d] = split<2>(x, {1, 3}, 1);
    const Tensor row = slice(b, 0, 1);
    CHECK_ERROR(chunk<3>(x, 1), ShapeError, line(__LINE__));
    return Tensors{add({a, b, row}),
                   d - c,
                   pick(x, indices),
                   expand_as(row, a),
                   expand_as(Tensor::from(true), x),
                   add({x})};
  };
  const Tensor x = reshape(arange(12, DType::f32), {3, 4}), indices = Tensor::from({3, 0, 2});
  const Tensors eager = of(x, indices);
  CHECK(eager[0].to_vector<float>() == Floats{4, 7, 12, 15, 20, 23});
  CHECK(eager[1].to_vector<float>() == Floats{1, 2, 3, 1, 2, 3, 1, 2, 3});
  CHECK(eager[2].to_vector<float>() == Floats{3, 4, 10});
  CHECK(eager[3].to_vector<float>() == Floats{2, 3, 2, 3, 2, 3});
  CHECK(sum(eager[4]).item<int>() == 12);
  const Tensor leaf = x.with_grad();
  CHECK(gradient(sum(pick(leaf, indices) * 2), leaf).to_vector<float>() ==
        Floats{0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 2, 0});
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {-1, 4}),
               which = graph.placeholder("i", DType::i32, {-1});
  const Tensors symbolic = of(open, which);
  Session session(graph);
  for (std::size_t i = 0; i < eager.size(); ++i) {
    INFO(i);
    CHECK(bit_equal(session.run(symbolic[i], {{open, x}, {which, indices}}), eager[i]));
  }
}

TEST_CASE("A batch stands for a loader's options, and a rate for an optimizer's") {
  const DataSet data(Tensor::zeros({7, 2}), Tensor::zeros({7}));
  std::vector<std::int64_t> sizes;
  for (const auto& [x, y] : DataLoader(data, 3)) sizes.push_back(y.size(0));
  CHECK(sizes == std::vector<std::int64_t>{3, 3, 1});
  CHECK_ERROR_HERE(DataLoader(data, 0), Error, "");

  const auto stepped = [](const auto& optimizer) {
    const Parameters params(Device::cpu(), Seed{1});
    const Tensor w = params.declare("w", {1}, initializers::constant(1));
    optimizer.minimize(sum(w), params);
    return w.item<float>();
  };
  CHECK(stepped(optim::Sgd(0.25)) == 0.75f);
  CHECK(stepped(optim::Sgd(Tensor::full({}, 0.25, DType::f64))) == 0.75f);
  CHECK(stepped(optim::Sgd(optim::linear_warm_up(0.5, 2))) == 0.75f);
  CHECK(stepped(optim::Adam(0.5)) == stepped(optim::Adam({.learning_rate = 0.5})));
  CHECK(stepped(optim::AdamW(0.5)) == stepped(optim::AdamW({.learning_rate = 0.5})));
  CHECK(stepped(optim::Lion(0.5)) == stepped(optim::Lion({.learning_rate = 0.5})));
  CHECK(stepped(optim::Rmsprop(0.5)) == stepped(optim::Rmsprop({.learning_rate = 0.5})));
  CHECK(stepped(optim::Adagrad(0.5)) == stepped(optim::Adagrad({.learning_rate = 0.5})));
  CHECK_ERROR(optim::Adam(-1), Error, line(__LINE__));
}

TEST_CASE("Units, heads and a kernel stand for a layer's options") {
  const Parameters params(Device::cpu(), Seed{1});
  const models::Lstm lstm(params.scope("lstm"), 3, 5);
  const models::Gru gru(params.scope("gru"), 3, 5);
  const models::Conv2d conv(params.scope("conv"), 3, 4, 2);
  const models::MultiHeadAttention attention(params.scope("attention"), 6, 2);
  const Tensor x = Tensor::zeros({2, 4, 3});
  CHECK(lstm(x).sequence.shape() == Shape{2, 4, 5});
  CHECK(gru(x).sequence.shape() == Shape{2, 4, 5});
  CHECK(conv(Tensor::zeros({1, 3, 4, 4})).shape() == Shape{1, 4, 3, 3});
  CHECK(attention(Tensor::zeros({2, 4, 6})).shape() == Shape{2, 4, 6});
  CHECK_ERROR_HERE(models::MultiHeadAttention(params.scope("a"), 6, 4), Error, "");
  CHECK_ERROR_HERE(models::Lstm(params.scope("b"), 3, 0), Error, "");
}

}  // namespace ebb::tests
