// Recurrent models over sequences of different lengths, one way and both, against PyTorch's
// (tests/golden/make_recurrent.py).
#include <cmath>

#include "ebb/ebb.h"
#include "ebb/tests/device/poisoned.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

// Differences between the models. run() returns the sequence and the final states.
struct OfLstm {
  using Model = models::Lstm;
  static constexpr const char *kName = "lstm", *kBoth = "both";
  static constexpr std::size_t kStates = 2;
  static Tensors run(const Model& model, const Tensor& x, const Tensors& initial = Tensors(2),
                     const Tensor& lengths = {}, Phase phase = Phase::inference,
                     CallSite site = CallSite::here()) {
    const models::LstmOutput out =
        model(x, {.phase = phase, .initial = {initial[0], initial[1]}, .lengths = lengths}, site);
    return {out.sequence, out.hidden, out.cell};
  }
};
struct OfGru {
  using Model = models::Gru;
  static constexpr const char *kName = "gru", *kBoth = "gru_both";
  static constexpr std::size_t kStates = 1;
  static Tensors run(const Model& model, const Tensor& x, const Tensors& initial = Tensors(1),
                     const Tensor& lengths = {}, Phase phase = Phase::inference,
                     CallSite site = CallSite::here()) {
    const models::GruOutput out =
        model(x, {.phase = phase, .hidden = initial[0], .lengths = lengths}, site);
    return {out.sequence, out.hidden};
  }
};

constexpr const char* kOutputs[] = {"sequence", "hidden", "cell"};

// Checks outputs and gradients. The loss is sum(sequence^2) + sum(hidden * cell), for a GRU
// sum(sequence^2) + sum(hidden^2).
template <class Of>
struct Problem {
  Problem(const Parameters& parameters, const Golden& file, bool both)
      : golden(file),
        prefix(std::string(both ? Of::kBoth : Of::kName) + '.'),
        model(parameters.scope(both ? Of::kBoth : Of::kName), 3,
              {.hidden = 5, .layers = 2, .bidirectional = both}) {}

  Tensor of(const std::string& name) const { return golden[prefix + name]; }
  static std::string initial(std::size_t state) {
    return std::string("initial_") + kOutputs[state + 1];
  }
  Tensors run(const Tensor& x, const Tensors& states, const Tensor& lengths) const {
    return Of::run(model, x, states, lengths, Phase::training);
  }
  static Tensor loss(const Tensors& outputs) {
    return sum(square(outputs[0])) + sum(outputs[1] * outputs[Of::kStates]);
  }

  void check(const Tensors& outputs, DType dtype) const {
    for (std::size_t i = 0; i <= Of::kStates; ++i) {
      CAPTURE(kOutputs[i]);
      CHECK(distance(outputs[i], of(kOutputs[i])) < (dtype == DType::f32 ? 1e-5 : 1e-12));
    }
  }
  void check_gradient(const Tensor& gradient, const std::string& name, DType dtype) const {
    CAPTURE(name);
    CHECK(distance(gradient, golden["gradient." + name]) < (dtype == DType::f32 ? 1e-5 : 1e-12));
  }

  const Golden& golden;
  const std::string prefix;
  const typename Of::Model model;
};

// Bit for bit, but for CUDA, where cuDNN computes a stack without lengths.
bool is_same(const Tensor& a, const Tensor& b) {
  return on_cuda() ? sum(abs(a - b)).item<float>() < 1e-5 : bit_equal(a, b);
}

}  // namespace

TEMPLATE_TEST_CASE(
    "sequences of their own lengths are gone through as PyTorch's packed ones, in both modes",
    "[models]", OfLstm, OfGru) {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool both = GENERATE(false, true), as_graph = GENERATE(false, true);
  const Poisoned poisoned;  // nothing behind an end is read before it is written
  const Golden golden(std::string("recurrent_") + name(dtype));
  InMode mode(as_graph, dtype);
  const Problem<TestType> problem(mode.parameters, golden, both);
  std::vector<Spec> specs = {{problem.of("lengths").dtype(), {-1}}, {dtype, {-1, -1, 3}}};
  std::vector<std::string> names = {problem.prefix + "x"};
  Tensors values = {problem.of("lengths"), problem.of("x").with_grad()};
  for (std::size_t i = 0; i < TestType::kStates; ++i) {
    const std::string name = problem.initial(i);
    specs.push_back({dtype, {both ? 4 : 2, -1, 5}});
    names.push_back(problem.prefix + name);
    values.push_back(problem.of(name).with_grad());
  }
  for (const auto& entry : mode.parameters.entries()) names.push_back(entry.name);
  const auto run = mode.function(specs, [&](const Tensors& in) {
    Tensors results = problem.run(in[1], {in.begin() + 2, in.end()}, in[0]);
    Tensors of(in.begin() + 1, in.end());
    for (const Tensor& parameter : mode.parameters.tensors()) of.push_back(parameter);
    for (const Tensor& gradient : gradients(problem.loss(results), of)) results.push_back(gradient);
    return results;
  });
  mode.load(golden.path());
  const Tensors results = run(values);
  problem.check(results, dtype);
  for (std::size_t i = 0; i < names.size(); ++i)
    problem.check_gradient(results[1 + TestType::kStates + i], names[i], dtype);
}

TEMPLATE_TEST_CASE("a row of a batch does not depend on the others or on what is behind its end",
                   "[models]", OfLstm, OfGru) {
  const Parameters parameters(Device::cpu(), Seed{3}, DType::f64);
  const typename TestType::Model model(parameters, 3,
                                       {.hidden = 5, .layers = 2, .bidirectional = true});
  const Tensor x = normal({3, 6, 3}, {.dtype = DType::f64});
  const Tensors none(TestType::kStates);
  const Tensors all = TestType::run(model, x, none, Tensor::from({2, 0, 5}));
  const Tensors alone = TestType::run(model, reshape(slice(x[0], 0, 2), {1, 2, 3}));
  CHECK(distance(slice(all[0][0], 0, 2), alone[0][0]) < 1e-14);
  for (std::size_t i = 1; i <= TestType::kStates; ++i)
    for (const std::int64_t layer : {0, 3})
      CHECK(distance(all[i][layer][0], alone[i][layer][0]) < 1e-14);
  CHECK(sum(square(slice(all[0][0], 2))).template item<double>() == 0);
  CHECK(sum(square(all[0][1])).template item<double>() == 0);
  CHECK(sum(square(all[1][1][1])).template item<double>() == 0);
}

TEMPLATE_TEST_CASE("too few or too many initial states both ways are refused before any pass",
                   "[models]", OfLstm, OfGru) {
  const Parameters parameters(Device::cpu(), Seed{3});
  const typename TestType::Model model(
      parameters, 3, {.hidden = 5, .layers = 2, .dropout = 0.5, .bidirectional = true});
  const Tensor x = normal({2, 4, 3});
  for (const Shape& shape :
       {Shape{3, 2, 5}, Shape{8, 2, 5}, Shape{4, 1, 5}, Shape{4, 2, 6}, Shape{4, 2}}) {
    Tensors states;
    for (std::size_t i = 0; i < TestType::kStates; ++i) states.push_back(Tensor::zeros(shape));
    set_seed(Seed{7});
    const Tensor next = normal({3});
    set_seed(Seed{7});
    const auto wrong = [&](CallSite site = CallSite::here()) {
      return TestType::run(model, x, states, {}, Phase::training, site);
    };
    CHECK_ERROR_HERE(wrong(), ShapeError,
                     std::string("[") + TestType::kName +
                         "] the initial hidden must be [2 layers, batch, hidden], here [4, 2, 5]");
    CHECK_ERROR(wrong(), ShapeError, shape.to_string());
    CHECK(bit_equal(normal({3}), next));
  }
}

TEMPLATE_TEST_CASE("layers drop out between them in training only, and one alone draws nothing",
                   "[models]", OfLstm, OfGru) {
  const bool both = GENERATE(false, true);
  const Tensor x = normal({2, 4, 3});
  const auto sequences = [&](std::int64_t layers, double dropout, Phase phase) {
    const typename TestType::Model model(
        Parameters(Device::cpu(), Seed{2}), 3,
        {.hidden = 5, .layers = layers, .dropout = dropout, .bidirectional = both});
    set_seed(Seed{7});
    const Tensors none(TestType::kStates);
    const Tensor first = TestType::run(model, x, none, {}, phase)[0];
    return Tensors{first, TestType::run(model, x, none, {}, phase)[0], normal({3})};
  };
  for (const std::int64_t layers : {1, 2}) {
    const Tensors plain = sequences(layers, 0, Phase::training);
    CHECK(bit_equal(sequences(layers, 0.5, Phase::inference)[0], plain[0]));
    const Tensors dropped = sequences(layers, 0.5, Phase::training);
    CHECK_FALSE(bit_equal(dropped[0], dropped[1]) == (layers == 2));
    for (std::size_t i = 0; i < 3; ++i) CHECK(bit_equal(dropped[i], plain[i]) == (layers == 1));
  }
}

TEST_CASE("a GRU's gradients that nobody asks for take no memory", "[models]") {
  const auto leaf = [](const Shape& shape) { return normal(shape).with_grad(); };
  const GruWeights weights = {leaf({64, 192}), leaf({64, 192}), leaf({256})};
  const Tensor x = leaf({4, 6, 64});
  const auto peak = [&](const Tensors& inputs) {
    const Tensor loss = sum(gru(x, {&weights, 1}).sequence);
    const Bytes pass;
    gradients(loss, inputs);
    return pass.peak();
  };
  const std::size_t bytes = weights.input.bytes() + weights.recurrent.bytes();
  CHECK(peak({x, weights.input, weights.recurrent}) >= peak({x}) + bytes);
  // The gradient by a temporary is written over the temporary.
  const auto peak_of = [&](bool is_temporary) {
    const Tensor given = leaf({4, 6, 64});
    const Tensor loss = sum(gru(is_temporary ? given * 2 : given, {&weights, 1}).sequence);
    const Bytes pass;
    gradients(loss, {given});
    return pass.peak();
  };
  CHECK(peak_of(true) + x.bytes() == peak_of(false));
}

TEST_CASE("lengths that are all of the sequence change nothing", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Lstm lstm(parameters, 3, {.hidden = 5, .layers = 2});
  const Tensor x = normal({4, 6, 3});
  const models::LstmOutput with = lstm(x, {.lengths = Tensor::full({4}, 6, DType::i64)});
  const models::LstmOutput without = lstm(x);
  CHECK(is_same(with.sequence, without.sequence));
  CHECK(is_same(with.hidden, without.hidden));
  CHECK(is_same(with.cell, without.cell));
}

TEMPLATE_TEST_CASE("a length that cannot be makes its row NaN and no other, gradients too",
                   "[models]", OfLstm, OfGru) {
  const Parameters parameters(Device::cpu(), Seed{3});
  const typename TestType::Model model(parameters, 3, {.hidden = 5, .layers = 2});
  const Tensor x = normal({3, 6, 3}).with_grad();
  const Tensors none(TestType::kStates);
  const auto check = [](const Tensor& part, bool is_nan) {
    for (const float value : reshape(part, {-1}).template to_vector<float>())
      CHECK(std::isnan(value) == is_nan);
  };
  for (const int wrong : {-1, 7}) {
    const Tensors out = TestType::run(model, x, none, Tensor::from({6, wrong, 6}));
    check(out[0][1], true);
    for (std::size_t i = 1; i <= TestType::kStates; ++i)
      check(out[i][static_cast<std::int64_t>(i - 1)][1], true);
    CHECK(is_same(out[0][2], TestType::run(model, x)[0][2]));
    const Tensor dx = gradients(sum(out[0]), {x})[0];
    check(dx[1], true);
    check(dx[2], false);
  }
  // With one layer and with one step, NaN comes neither from a layer below nor from a step before.
  const typename TestType::Model plain(parameters.scope("plain"), 3, {.hidden = 5});
  for (const Tensor& sequence : {x, slice(x, 0, 1, {.axis = 1})}) {
    const Tensor leaf = sequence.detach().with_grad();
    const Tensors out = TestType::run(plain, leaf, none, Tensor::from({1, -1, 1}));
    const Tensor dx = gradients(sum(out[0]), {leaf})[0];
    for (const Tensor& part : {out[0], out[TestType::kStates][0], dx}) {
      check(part[1], true);
      check(part[2], false);
    }
  }
  CHECK_ERROR(TestType::run(model, x, none, Tensor::from({6.f, 1.f, 6.f})), Error, "i32 or i64");
  CHECK_ERROR(TestType::run(model, x, none, Tensor::from({6, 1})), ShapeError, "integers [batch]");
}

TEMPLATE_TEST_CASE("sequences without steps hand their initial state on, and its gradient back",
                   "[models]", OfLstm, OfGru) {
  const Parameters parameters(Device::cpu(), Seed{3}, DType::f64);
  const typename TestType::Model model(parameters, 3, {.hidden = 5, .layers = 2});
  const NormalOptions options{.dtype = DType::f64};
  Tensors initial;
  for (std::size_t i = 0; i < TestType::kStates; ++i)
    initial.push_back(normal({2, 2, 5}, options).with_grad());
  const Tensor w = normal({2, 2, 5}, options), none = Tensor::zeros({2, 0, 3}, DType::f64);
  // The first row of a batch has no steps, or there are none at all.
  const auto check = [&](const Tensor& x, const Tensor& lengths, std::int64_t rows) {
    const Tensors out = TestType::run(model, x, initial, lengths);
    for (std::size_t i = 0; i < TestType::kStates; ++i) {
      const auto part = [&](const Tensor& of) { return slice(of, 0, rows, {.axis = 1}); };
      const Tensor& state = initial[i];
      const auto gradient = [&](const Tensor& loss) {
        return gradients(loss, {state}, {.retain_graph = true})[0];
      };
      CHECK(bit_equal(part(out[i + 1]), part(state.detach())));
      CHECK(bit_equal(part(gradient(sum(out[i + 1] * w))), part(w)));
      if (rows == 1)
        CHECK(bit_equal(part(gradient(sum(out[0]))), Tensor::zeros({2, 1, 5}, DType::f64)));
    }
    return out[0];
  };
  check(normal({2, 4, 3}, options), Tensor::from({0, 3}), 1);
  for (const Tensor& lengths : {Tensor(), Tensor::from({0, 0})}) {
    CHECK(check(none, lengths, 2).shape() == Shape{2, 0, 5});
    const Tensors out = TestType::run(model, none, Tensors(TestType::kStates), lengths);
    CHECK(bit_equal(out[1], Tensor::zeros({2, 2, 5}, DType::f64)));
  }
}

TEST_CASE("two ways without gradients free what each has read before they are put side by side",
          "[models][memory]") {
  if (on_cuda()) return;  // there workspace is most of a pass
  const Parameters parameters(Device::cpu());
  const models::Gru gru(parameters.scope("gru"), 64, {.hidden = 32, .bidirectional = true});
  const models::Lstm lstm(parameters.scope("lstm"), 64, {.hidden = 32, .bidirectional = true});
  const Tensor x = normal({4, 256, 64});  // as large as the output of both ways
  const NoGrad no_grad;
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  const auto taken = [&](const auto& model) {
    const memory::PeakScope peak(Device::cpu());
    model(x);
    return peak.bytes() - before;
  };
  CHECK(taken(gru) < 5 * x.bytes() / 2);
  CHECK(taken(lstm) < 5 * x.bytes() / 2);
}

TEST_CASE("an LSTM's initial cell is looked at as its hidden state is", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Lstm lstm(parameters, 3, {.hidden = 5, .layers = 2, .bidirectional = true});
  const Tensor x = normal({2, 4, 3});
  const Tensor right = Tensor::zeros({4, 2, 5}), wrong = Tensor::zeros({8, 2, 5});
  CHECK_ERROR(lstm(x, {.initial = {right, wrong}}), ShapeError, "[lstm] the initial cell must be");
  CHECK_ERROR(lstm(Tensor(), {.initial = {right, right}}), Error, "[lstm] an input is a tensor");
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {-1, 4, 3}),
               two = graph.placeholder("two", DType::f32, {4, 2, 5});
  CHECK(lstm(open, {.initial = {two, two}}).hidden.shape() == Shape{4, -1, 5});
}

TEST_CASE("steps one by one are what the sequence gives", "[models]") {
  const auto values = [](const Shape& shape) { return normal(shape, {.dtype = DType::f64}); };
  const LstmWeights weights = {values({3, 20}), values({5, 20}), values({20})};
  const GruWeights of_gru = {values({3, 15}), values({5, 15}), values({20})};
  const Tensor x = values({2, 4, 3});
  LstmCellState state;
  Tensor hidden;
  for (int t = 0; t < 4; ++t) {
    state = lstm_cell(select(x, 1, t), state, weights);
    hidden = gru_cell(select(x, 1, t), hidden, of_gru);
  }
  const LstmResult whole = lstm(x, {&weights, 1});
  CHECK(distance(state.hidden, whole.hidden[0]) < 1e-14);
  CHECK(distance(state.cell, whole.cell[0]) < 1e-14);
  CHECK(distance(hidden, gru(x, {&of_gru, 1}).hidden[0]) < 1e-14);
  CHECK_ERROR_HERE(lstm_cell(x, state, weights), ShapeError, "[lstm_cell] takes x [batch, in]");
  CHECK_ERROR_HERE(gru_cell(x, hidden, of_gru), ShapeError, "[gru_cell] takes x [batch, in]");
}

TEST_CASE("a reversed sequence has what follows its end where it was", "[models]") {
  const Tensor x = Tensor::from({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
  const Tensor lengths = Tensor::from({3, 0, 5});
  CHECK(reverse_sequence(x, lengths).to_vector<int>() ==
        std::vector<int>{3, 2, 1, 4, 5, 6, 7, 8, 0, 0, 0, 0});
  CHECK(reverse_sequence(x, Tensor::from({-1, 4, 1})).to_vector<int>() ==
        std::vector<int>{0, 0, 0, 0, 8, 7, 6, 5, 9, 10, 11, 12});
  CHECK_ERROR(reverse_sequence(x, Tensor::from({1, 2})), ShapeError, "integers [batch]");
  CHECK_ERROR(reverse_sequence(x[0], lengths), ShapeError, "[batch, time, ...]");
}

}  // namespace ebb::tests
