// GRUs over sequences of their own lengths, one way and both, against PyTorch's
// (tests/golden/make_recurrent.py).
#include "ebb/models/gru.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"

namespace ebb::tests {
namespace {

// Forward, and the gradients of sum(sequence^2) + sum(hidden^2).
struct Problem {
  Problem(const Parameters& parameters, const Golden& file, bool both)
      : golden(file),
        prefix(both ? "gru_both." : "gru."),
        gru(parameters.scope(both ? "gru_both" : "gru"), 3,
            {.hidden = 5, .layers = 2, .bidirectional = both}) {}

  Tensor of(const std::string& name) const { return golden[prefix + name]; }

  // Sequence, hidden, and the loss.
  Tensors run(const Tensor& x, const Tensor& hidden, const Tensor& lengths) const {
    const models::GruOutput out =
        gru(x, {.phase = Phase::training, .hidden = hidden, .lengths = lengths});
    return {out.sequence, out.hidden, sum(square(out.sequence)) + sum(square(out.hidden))};
  }

  void check(const Tensors& outputs, DType dtype) const {
    const double near = dtype == DType::f32 ? 1e-5 : 1e-12;
    CHECK(distance(outputs[0], of("sequence")) < near);
    CHECK(distance(outputs[1], of("hidden")) < near);
  }
  void check_gradient(const Tensor& gradient, const std::string& name, DType dtype) const {
    CAPTURE(name);
    CHECK(distance(gradient, golden["gradient." + name]) < (dtype == DType::f32 ? 1e-5 : 1e-12));
  }

  const Golden& golden;
  const std::string prefix;
  const models::Gru gru;
};

}  // namespace

TEST_CASE("a GRU computes what PyTorch's does over packed sequences, eagerly", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool both = GENERATE(false, true);
  const Golden golden(std::string("recurrent_") + name(dtype));
  const Parameters parameters(Device::cpu(), Seed{1}, dtype);
  const Problem problem(parameters, golden, both);
  parameters.load(golden.path());
  const Tensor x = problem.of("x").with_grad(), hidden = problem.of("initial_hidden").with_grad();
  const Tensors outputs = problem.run(x, hidden, problem.of("lengths"));
  problem.check(outputs, dtype);
  outputs[2].backward();
  problem.check_gradient(x.grad(), problem.prefix + "x", dtype);
  problem.check_gradient(hidden.grad(), problem.prefix + "initial_hidden", dtype);
  for (const auto& [name, tensor] : parameters.entries())
    problem.check_gradient(tensor.grad(), name, dtype);
}

TEST_CASE("a GRU computes what PyTorch's does over packed sequences, in a graph", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool both = GENERATE(false, true);
  const Golden golden(std::string("recurrent_") + name(dtype));
  Graph graph;
  const Parameters parameters(graph, Seed{1}, dtype);
  const Problem problem(parameters, golden, both);
  const Tensor x = graph.placeholder("x", dtype, {-1, -1, 3});
  const Tensor hidden = graph.placeholder("hidden", dtype, {both ? 4 : 2, -1, 5});
  const Tensor lengths = graph.placeholder("lengths", DType::i32, {-1});
  const Tensors outputs = problem.run(x, hidden, lengths);
  Tensors inputs = {x, hidden};
  std::vector<std::string> names = {problem.prefix + "x", problem.prefix + "initial_hidden"};
  for (const auto& [name, tensor] : parameters.entries()) {
    inputs.push_back(tensor);
    names.push_back(name);
  }
  const Tensors computed = gradients(outputs[2], inputs);
  Session session(graph);
  session.initialize();
  session.restore(golden.path(), parameters);
  const Feeds feeds = {{x, problem.of("x")},
                       {hidden, problem.of("initial_hidden")},
                       {lengths, Tensor::from({6, 1, 4, 3})}};
  problem.check(session.run(outputs, feeds), dtype);
  const Tensors values = session.run(computed, feeds);
  for (std::size_t i = 0; i < names.size(); ++i) problem.check_gradient(values[i], names[i], dtype);
}

TEST_CASE("a row of a GRU's batch does not depend on the others or on what is behind its end",
          "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3}, DType::f64);
  const models::Gru gru(parameters, 3, {.hidden = 5, .layers = 2, .bidirectional = true});
  const Tensor x = normal({3, 6, 3}, {.dtype = DType::f64});
  const models::GruOutput all = gru(x, {.lengths = Tensor::from({2, 0, 5})});
  const models::GruOutput alone = gru(reshape(slice(x[0], 0, 2), {1, 2, 3}));
  CHECK(distance(slice(all.sequence[0], 0, 2), alone.sequence[0]) < 1e-14);
  CHECK(distance(all.hidden[3][0], alone.hidden[3][0]) < 1e-14);
  CHECK(sum(square(slice(all.sequence[0], 2))).item<double>() == 0);
  CHECK(sum(square(all.sequence[1])).item<double>() == 0);
  CHECK(sum(square(all.hidden[1][1])).item<double>() == 0);
}

TEST_CASE("a length that cannot be makes its row of a GRU NaN and no other, gradients too",
          "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3, {.hidden = 5, .layers = 2});
  const Tensor x = normal({3, 6, 3}).with_grad();
  for (const int wrong : {-1, 7}) {
    const models::GruOutput out = gru(x, {.lengths = Tensor::from({6, wrong, 6})});
    for (const Tensor& part : {out.sequence[1], out.hidden[0][1]})
      for (const float value : reshape(part, {-1}).to_vector<float>()) CHECK(std::isnan(value));
    CHECK(bit_equal(out.sequence[2], gru(x).sequence[2]));
    const Tensor dx = gradients(sum(out.sequence), {x})[0];
    for (const float value : reshape(dx[1], {-1}).to_vector<float>()) CHECK(std::isnan(value));
    for (const float value : reshape(dx[2], {-1}).to_vector<float>()) CHECK(!std::isnan(value));
  }
  // Of one layer, where no NaN comes from the step before or the layer below.
  const models::Gru plain(parameters.scope("plain"), 3, {.hidden = 5});
  for (const Tensor& sequence : {x, slice(x, 0, 1, {.axis = 1})}) {
    const Tensor leaf = sequence.detach().with_grad();
    const Tensor out = plain(leaf, {.lengths = Tensor::from({1, -1, 1})}).sequence;
    const Tensor dx = gradients(sum(out), {leaf})[0];
    for (const Tensor& part : {out[1], dx[1]})
      for (const float value : reshape(part, {-1}).to_vector<float>()) CHECK(std::isnan(value));
    for (const Tensor& part : {out[2], dx[2]})
      for (const float value : reshape(part, {-1}).to_vector<float>()) CHECK(!std::isnan(value));
  }
}

TEST_CASE("too few or too many initial states of a GRU both ways are refused before any pass",
          "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3,
                        {.hidden = 5, .layers = 2, .dropout = 0.5, .bidirectional = true});
  const Tensor x = normal({2, 4, 3});
  for (const Shape& shape :
       {Shape{3, 2, 5}, Shape{8, 2, 5}, Shape{4, 1, 5}, Shape{4, 2, 6}, Shape{4, 2}}) {
    const Tensor states = Tensor::zeros(shape);
    set_seed(Seed{7});
    const Tensor next = normal({3});
    set_seed(Seed{7});
    const int line = __LINE__ + 1;
    const auto wrong = [&] { return gru(x, {.phase = Phase::training, .hidden = states}); };
    CHECK_ERROR(wrong(), ShapeError,
                "[gru] the initial hidden must be [2 layers, batch, hidden], here [4, 2, 5]");
    CHECK_ERROR(wrong(), ShapeError, shape.to_string());
    CHECK_ERROR(wrong(), ShapeError, "gru.cpp:" + std::to_string(line));
    CHECK(bit_equal(normal({3}), next));
  }
}

TEST_CASE("steps of a GRU one by one are what the sequence gives", "[models]") {
  const auto values = [](const Shape& shape) { return normal(shape, {.dtype = DType::f64}); };
  const GruWeights weights = {values({3, 15}), values({5, 15}), values({20})};
  const Tensor x = values({2, 4, 3});
  Tensor state;
  for (int t = 0; t < 4; ++t) state = gru_cell(select(x, 1, t), state, weights);
  CHECK(distance(state, gru(x, {&weights, 1}).hidden[0]) < 1e-14);
  const int line = __LINE__ + 1;
  const auto wrong = [&] { return gru_cell(x, state, weights); };
  CHECK_ERROR(wrong(), ShapeError, "[gru_cell] takes x [batch, in]");
  CHECK_ERROR(wrong(), ShapeError, "gru.cpp:" + std::to_string(line));
}

TEST_CASE("a GRU starts within 1 / sqrt(hidden), its biases too", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{4});
  models::Gru(parameters, 3, {.hidden = 100, .bidirectional = true});
  CHECK(parameters.entries().size() == 6);
  for (const auto& [name, tensor] : parameters.entries()) {
    CAPTURE(name);
    const std::vector<double> values = values_of(tensor);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK((*low >= -0.1 && *low < -0.09 && *high <= 0.1 && *high > 0.09));
  }
}

TEST_CASE("what a GRU refuses is of the caller's line, one way and both", "[models]") {
  const bool both = GENERATE(false, true);
  const Parameters parameters(Device::cpu());
  const models::Gru gru(parameters, 3, {.hidden = 5, .bidirectional = both});
  const int line = __LINE__ + 1;
  const auto wrong = [&](const Tensor& x) { return gru(x, Phase::inference, Tensor::zeros({1})); };
  CHECK_ERROR(wrong(Tensor::zeros({2, 3})), ShapeError, "[gru] takes x [batch, time, in]");
  CHECK_ERROR(wrong(Tensor::zeros({2, 3})), ShapeError, "gru.cpp:" + std::to_string(line));
  CHECK_ERROR(wrong(Tensor::zeros({2, 4, 3})), ShapeError, "gru.cpp:" + std::to_string(line));
}

TEST_CASE("a GRU of one layer has nothing to drop, and draws nothing", "[models]") {
  const bool both = GENERATE(false, true);
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3, {.hidden = 8, .dropout = 0.5, .bidirectional = both});
  const Tensor x = normal({2, 4, 3});
  set_seed(Seed{7});
  const Tensor next = normal({3});
  set_seed(Seed{7});
  CHECK(bit_equal(gru(x, Phase::training).sequence, gru(x).sequence));
  CHECK(bit_equal(normal({3}), next));
}

TEST_CASE("a GRU without steps hands its initial state on, and that one's gradient back",
          "[models]") {
  const bool with_lengths = GENERATE(false, true);
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3, {.hidden = 5, .layers = 2});
  const Tensor x = Tensor::zeros({2, 0, 3}), hidden = normal({2, 2, 5}).with_grad();
  const Tensor lengths = with_lengths ? Tensor::from({0, 0}) : Tensor();
  const models::GruOutput out = gru(x, {.hidden = hidden, .lengths = lengths});
  CHECK(out.sequence.shape() == Shape{2, 0, 5});
  CHECK(bit_equal(out.hidden, hidden));
  CHECK(bit_equal(gradients(sum(out.hidden * hidden.detach()), {hidden})[0], hidden));
  CHECK(bit_equal(gru(x, {.lengths = lengths}).hidden, Tensor::zeros({2, 2, 5})));
}

TEST_CASE("a GRU's gradients that nobody asks for take no memory", "[models]") {
  const auto leaf = [](const Shape& shape) { return normal(shape).with_grad(); };
  const GruWeights weights = {leaf({64, 192}), leaf({64, 192}), leaf({256})};
  const Tensor x = leaf({4, 6, 64});
  const auto peak = [&](const Tensors& inputs) {
    const Tensor loss = sum(gru(x, {&weights, 1}).sequence);
    const memory::PeakScope scope(Device::cpu());
    gradients(loss, inputs);
    return scope.bytes();
  };
  const std::size_t bytes = weights.input.bytes() + weights.recurrent.bytes();
  CHECK(peak({x, weights.input, weights.recurrent}) >= peak({x}) + bytes);
  // That by a temporary lies in its memory.
  const auto peak_of = [&](bool is_temporary) {
    const Tensor given = leaf({4, 6, 64});
    const Tensor loss = sum(gru(is_temporary ? given * 2 : given, {&weights, 1}).sequence);
    const std::size_t before = memory::stats(Device::cpu()).allocated.current;
    const memory::PeakScope scope(Device::cpu());
    gradients(loss, {given});
    return scope.bytes() - before;
  };
  CHECK(peak_of(true) + x.bytes() == peak_of(false));
}

TEST_CASE("dropout between a GRU's layers acts in training alone", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3, {.hidden = 8, .layers = 2, .dropout = 0.5});
  const Tensor x = normal({2, 4, 3});
  const auto sequence = [&](Phase phase) { return gru(x, phase).sequence; };
  CHECK(bit_equal(sequence(Phase::inference), sequence(Phase::inference)));
  CHECK(!bit_equal(sequence(Phase::training), sequence(Phase::inference)));
  CHECK(!bit_equal(sequence(Phase::training), sequence(Phase::training)));
}

}  // namespace ebb::tests
