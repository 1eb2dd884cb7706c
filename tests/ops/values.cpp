// Values at the edges, and operators of many parts against their formulas.
#include <cmath>
#include <limits>

#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The largest difference between two tensors of one shape.
double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Doubles x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

Tensor random(const Shape& shape) { return normal(shape, {.dtype = DType::f64}); }

}  // namespace

TEST_CASE("relu passes NaN on, and its gradient is 0 at 0") {
  const Tensor x = Tensor::from({-1.f, 0.f, 2.f, kNaN, kInfinity, -kInfinity}).with_grad();
  const Tensor y = relu(x);
  const Floats values = y.to_vector<float>();
  CHECK(Floats(values.begin(), values.begin() + 3) == Floats{0, 0, 2});
  CHECK(std::isnan(values[3]));
  CHECK(values[4] == kInfinity);
  CHECK(values[5] == 0);
  const Tensor small = Tensor::from({-1.f, 0.f, 2.f}).with_grad();
  sum(relu(small)).backward();
  CHECK(small.grad().to_vector<float>() == Floats{0, 0, 1});
}

TEST_CASE("Outside their domain functions give what IEEE 754 says") {
  CHECK(std::isnan(sqrt(Tensor::from({-1.f})).item<float>()));
  CHECK(std::isnan(log(Tensor::from({-1.f})).item<float>()));
  CHECK(log(Tensor::from({0.f})).item<float>() == -kInfinity);
  CHECK(exp(Tensor::from({1000.f})).item<float>() == kInfinity);
  CHECK((1 / Tensor::from({0.f})).item<float>() == kInfinity);
  CHECK(sigmoid(Tensor::from({-1000.f, 1000.f})).to_vector<float>() == Floats{0, 1});
  CHECK(tanh(Tensor::from({-1000.f, 1000.f})).to_vector<float>() == Floats{-1, 1});
}

TEST_CASE("A number beside a tensor takes its dtype and its side") {
  const Tensor x = Tensor::from({2.0, 4.0});
  CHECK((x + 1).dtype() == DType::f64);
  CHECK((1 - x).to_vector<double>() == Doubles{-1, -3});
  CHECK((x - 1).to_vector<double>() == Doubles{1, 3});
  CHECK((8 / x).to_vector<double>() == Doubles{4, 2});
  CHECK((x / 8).to_vector<double>() == Doubles{0.25, 0.5});
  CHECK((x * 0.1).to_vector<double>() == Doubles{2.0 * 0.1, 4.0 * 0.1});
}

TEST_CASE("softmax and its loss do not overflow") {
  const Tensor scores = Tensor::from({{1000.0, 0.0, -1000.0}, {-1000.0, -1000.0, -1000.0}});
  const Doubles p = softmax(scores).to_vector<double>();
  CHECK(p[0] == 1);
  CHECK(p[2] == 0);
  CHECK(std::abs(p[4] - 1.0 / 3) < 1e-15);
  const double loss = softmax_cross_entropy(scores, Tensor::from({1, 2})).item<double>();
  CHECK(std::abs(loss - (1000 + std::log(3.0)) / 2) < 1e-9);
}

TEST_CASE("An unlikely class has its probability to the last digits, on any device") {
  const Tensor x = Tensor::from({{100.1f, 20.3f, 33.7f}, {50.9f, 0.2f, -11.1f}});
  const std::vector<float> scores = x.to_vector<float>();
  for (const Tensor& y : {softmax(x), transpose(softmax(transpose(x), 0))}) {
    const std::vector<float> p = y.to_vector<float>();
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double largest = static_cast<double>(scores[i / 3 * 3]);
      double sum = 0;
      for (std::size_t j = i / 3 * 3; j < i / 3 * 3 + 3; ++j)
        sum += std::exp(static_cast<double>(scores[j]) - largest);
      const double right = std::exp(static_cast<double>(scores[i]) - largest) / sum;
      CHECK(std::abs(static_cast<double>(p[i]) / right - 1) < 8e-7);
    }
  }
}

TEST_CASE("The cross entropy is the mean of logsumexp minus the label's score") {
  const Tensor scores = random({7, 5});
  const std::vector<std::int64_t> labels = {0, 4, 2, 2, 1, 3, 0};
  const Doubles s = scores.to_vector<double>();
  double expected = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 5; ++j) total += std::exp(s[5 * i + j]);
    expected += std::log(total) - s[5 * i + static_cast<std::size_t>(labels[i])];
  }
  const Tensor loss = softmax_cross_entropy(scores, Tensor::from(labels, {7}));
  CHECK(loss.rank() == 0);
  CHECK(std::abs(loss.item<double>() - expected / 7) < 1e-14);
}

TEST_CASE("A sum of many equal floats does not stand still") {
  if (!on_host()) return;  // an emulated GPU takes too long
  // Added one after the other, sixteen million ones and one more stay sixteen million.
  const std::int64_t n = (1 << 24) + 4096;
  CHECK(sum(Tensor::full({n}, 1)).item<float>() == static_cast<float>(n));
}

TEST_CASE("mse is the mean of squared differences") {
  const Tensor a = Tensor::from({{1.f, 2.f}, {3.f, 4.f}}),
               b = Tensor::from({{1.f, 0.f}, {3.f, 8.f}});
  CHECK(mse(a, b).item<float>() == 5);
}

TEST_CASE("dense is the activation of x w + b, with sequences as with rows") {
  const Tensor x = random({4, 3, 5}), w = random({5, 6}), b = random({6});
  const Tensor plain = reshape(matmul(reshape(x, {12, 5}), w), {4, 3, 6}) + b;
  CHECK(distance(dense(x, w, b), plain) < 1e-13);
  CHECK(distance(dense(x, w, b, Activation::relu), relu(plain)) < 1e-13);
  CHECK(distance(dense(x, w, b, Activation::tanh), tanh(plain)) < 1e-13);
  CHECK(distance(dense(x, w, b, Activation::sigmoid), sigmoid(plain)) < 1e-13);
  // The rest are operators behind the product.
  CHECK(distance(dense(x, w, b, Activation::gelu), gelu(plain)) == 0);
  CHECK(distance(dense(x, w, b, Activation::silu), silu(plain)) == 0);
  CHECK(distance(dense(x, w, b, Activation::leaky_relu), leaky_relu(plain)) == 0);
  CHECK(distance(dense(x, w, b, Activation::elu), elu(plain)) == 0);
  CHECK(distance(dense(x, w, b, Activation::softplus), softplus(plain)) == 0);
}

TEST_CASE("Transposed products are products of the transposed") {
  const Tensor a = random({4, 6}), b = random({6, 3});
  // Written out, to be independent of every transposition.
  const auto transposed = [](const Tensor& x) {
    const Doubles from = x.to_vector<double>();
    const std::int64_t rows = x.shape()[0], columns = x.shape()[1];
    Doubles to(from.size());
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        to[static_cast<std::size_t>(j * rows + i)] =
            from[static_cast<std::size_t>(i * columns + j)];
    return Tensor::from(to, {columns, rows});
  };
  const Tensor product = matmul(a, b), at = transposed(a), bt = transposed(b);
  CHECK(distance(matmul(at, b, {.transpose_a = true}), product) < 1e-13);
  CHECK(distance(matmul(a, bt, {.transpose_b = true}), product) < 1e-13);
  CHECK(distance(matmul(at, bt, {.transpose_a = true, .transpose_b = true}), product) < 1e-13);
}

TEST_CASE("lstm is its formula, step by step and layer by layer") {
  constexpr std::int64_t kBatch = 3, kTime = 5, kIn = 2, kHidden = 4, kLayers = 2;
  const Tensor x = random({kBatch, kTime, kIn});
  const Tensor hidden = random({kLayers, kBatch, kHidden}),
               cell = random({kLayers, kBatch, kHidden});
  std::vector<LstmWeights> layers;
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    layers.push_back({random({layer ? kHidden : kIn, 4 * kHidden}), random({kHidden, 4 * kHidden}),
                      random({4 * kHidden})});
  const LstmResult result = lstm(x, layers, {.hidden = hidden, .cell = cell});

  std::vector<Tensor> inputs;
  for (std::int64_t t = 0; t < kTime; ++t) inputs.push_back(select(x, 1, t));
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const LstmWeights& weights = layers[static_cast<std::size_t>(layer)];
    Tensor h = select(hidden, 0, layer), c = select(cell, 0, layer);
    for (Tensor& step : inputs) {
      const Tensor a =
          reshape(matmul(step, weights.input) + matmul(h, weights.recurrent) + weights.bias,
                  {kBatch, 4, kHidden});
      const auto gate = [&](std::int64_t which) { return select(a, 1, which); };
      c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * tanh(gate(2));
      h = sigmoid(gate(3)) * tanh(c);
      step = h;
    }
    CHECK(distance(select(result.hidden, 0, layer), h) < 1e-13);
    CHECK(distance(select(result.cell, 0, layer), c) < 1e-13);
  }
  for (std::int64_t t = 0; t < kTime; ++t)
    CHECK(distance(select(result.sequence, 1, t), inputs[static_cast<std::size_t>(t)]) < 1e-13);
  CHECK(distance(last_step(result.sequence), inputs.back()) < 1e-13);
}

TEST_CASE("The activations of dense and the gates of an lstm are as accurate as the functions") {
  Floats at;
  for (int i = -1600; i <= 1600; ++i) at.push_back(static_cast<float>(i) / 100);
  const auto n = static_cast<std::int64_t>(at.size());
  const auto check = [&](const Tensor& result, double (*exact)(double)) {
    const Floats values = result.to_vector<float>();
    REQUIRE(values.size() == at.size());
    double worst = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double y = exact(static_cast<double>(at[i]));
      if (y != 0) worst = std::max(worst, std::abs(static_cast<double>(values[i]) / y - 1));
    }
    CHECK(worst < 5e-7);
  };
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto hyperbolic = [](double x) { return std::tanh(x); };
  const Tensor x = Tensor::from(at, {n}), none = Tensor::zeros({1, 1});
  check(sigmoid(x), logistic);
  check(tanh(x), hyperbolic);
  check(dense(none, Tensor::zeros({1, n}), x, Activation::sigmoid), logistic);
  check(dense(none, Tensor::zeros({1, n}), x, Activation::tanh), hyperbolic);

  // One step from nothing: the cell is sigmoid(i) tanh(g), the hidden state sigmoid(o) tanh(cell).
  const Tensor gates =
      Tensor::from({{1.f, 0.f, 0.f, 0.f}, {0.f, 0.f, 1.f, 0.f}, {0.f, 0.f, 0.f, 1.f}});
  const LstmWeights weights[] = {{gates, Tensor::zeros({1, 4}), Tensor::zeros({4})}};
  const auto step = [&](const Tensor& i, const Tensor& g, const Tensor& o) {
    return lstm(reshape(stack({i, g, o}, 1), {n, 1, 3}), weights);
  };
  const Tensor open = Tensor::full({n}, 40);
  check(step(x, open, open).cell, logistic);
  check(step(open, x, open).cell, hyperbolic);
  check(step(open, open, x).hidden / std::tanh(1.0), logistic);
}

TEST_CASE("A sequence in two halves, the state carried over, is the sequence in one") {
  const Tensor x = random({6, 2, 3});  // [time, batch, in], so that time can be sliced
  const LstmWeights weights[] = {{random({3, 16}), random({4, 16}), random({16})}};
  const auto by_batch = [](const Tensor& steps) {  // [time, 1, in] of one row is [1, time, in]
    return reshape(select(steps, 1, 0), {1, steps.shape()[0], 3});
  };
  const LstmResult whole = lstm(by_batch(x), weights);
  const LstmResult first = lstm(by_batch(slice(x, 0, 2)), weights);
  const LstmResult second =
      lstm(by_batch(slice(x, 2)), weights, {.hidden = first.hidden, .cell = first.cell});
  CHECK(distance(second.hidden, whole.hidden) < 1e-14);
  CHECK(distance(second.cell, whole.cell) < 1e-14);
}

TEST_CASE("cast cuts towards integers, and its gradient passes between floats only") {
  const Tensor x = Tensor::from({-1.7f, 0.f, 2.9f}).with_grad();
  CHECK(cast(x, DType::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, 0, 2});
  CHECK(cast(cast(x, DType::boolean), DType::u8).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{1, 0, 1});
  sum(square(cast(x, DType::f64))).backward();
  CHECK(x.grad().dtype() == DType::f32);
  CHECK(x.grad().to_vector<float>() == Floats{2 * -1.7f, 0, 2 * 2.9f});
  CHECK_FALSE(cast(cast(x, DType::i32), DType::f32).requires_grad());
}

TEST_CASE("fill_like makes tensors of every dtype") {
  CHECK(full_like(Tensor::from({1, 2}), 7).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{7, 7});
  CHECK(fill_like(Tensor::from({1, 2}), 7).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{7, 7});
  CHECK(fill_like(Tensor::zeros({2}, DType::u8), 3).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{3, 3});
}

TEST_CASE("assign and add_assign write in place, numbers too") {
  const Tensor x = Tensor::from({1.f, 2.f});
  const Tensor again = assign(x, Tensor::from({3.f, 4.f}));
  CHECK(x.to_vector<float>() == Floats{3, 4});
  CHECK(again.to_vector<float>() == Floats{3, 4});
  add_assign(x, Tensor::from({1.f, 1.f}));
  CHECK(again.to_vector<float>() == Floats{4, 5});
  assign(x, 0.5);
  add_assign(x, 1);
  CHECK(x.to_vector<float>() == Floats{1.5, 1.5});
}

TEST_CASE("rows counts the leading axis") {
  CHECK(rows(Tensor::zeros({5, 3})).item<std::int64_t>() == 5);
  CHECK(rows(Tensor::zeros({0, 3})).item<std::int64_t>() == 0);
}

}  // namespace ebb::tests
