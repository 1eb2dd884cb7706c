// Layers and models: their parameters, initial values and options, equal in both modes.
#include <functional>
#include <stdexcept>

#include "ebb/ebb.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

std::vector<std::string> declared(const Parameters& parameters) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : parameters.entries())
    lines.push_back(name + ' ' + tensor.shape().to_string());
  return lines;
}

using Lines = std::vector<std::string>;

std::pair<double, double> range(const std::vector<double>& values, std::size_t begin,
                                std::size_t end) {
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto [low, high] = std::minmax_element(at(begin), at(end));
  return {*low, *high};
}

}  // namespace

TEST_CASE("models declare the parameters that they say", "[models]") {
  struct Row {
    std::function<void(const Parameters&)> make;
    Lines lines;
  };
  const Row rows[] = {
      {[](auto& p) { models::Dense(p.scope("hidden"), 3, 4); },
       {"hidden.weight [3, 4]", "hidden.bias [4]"}},
      {[](auto& p) { models::Dense(p, 5, 3, {.bias = false}); }, {"weight [5, 3]"}},
      {[](auto& p) {
         models::Mlp(p, {3, 4, 2});
       },
       {"0.weight [3, 4]", "0.bias [4]", "1.weight [4, 2]", "1.bias [2]"}},
      {[](auto& p) { models::Lstm(p, 3, {.hidden = 2, .layers = 2}); },
       {"0.input [3, 8]", "0.recurrent [2, 8]", "0.bias [8]", "1.input [2, 8]",
        "1.recurrent [2, 8]", "1.bias [8]"}},
      {[](auto& p) {
         models::Gru(p, 3, {.hidden = 2, .bidirectional = true, .recurrent_bias = true});
       },
       {"0.input [3, 6]", "0.recurrent [2, 6]", "0.bias [6]", "0.recurrent_bias [6]",
        "0.reverse.input [3, 6]", "0.reverse.recurrent [2, 6]", "0.reverse.bias [6]",
        "0.reverse.recurrent_bias [6]"}},
      {[](auto& p) { models::Forecaster(p, 1, {.hidden = 2}); },
       {"lstm.0.input [1, 8]", "lstm.0.recurrent [2, 8]", "lstm.0.bias [8]", "head.weight [2, 1]",
        "head.bias [1]"}},
      {[](auto& p) { models::Classifier(p, 5, 3, {.hidden = 4, .layers = 2}); },
       {"0.weight [5, 4]", "0.bias [4]", "1.weight [4, 4]", "1.bias [4]", "2.weight [4, 3]",
        "2.bias [3]"}},
      {[](auto& p) { models::Classifier(p, 5, 3, {.layers = 0}); },
       {"0.weight [5, 3]", "0.bias [3]"}},
      {[](auto& p) {
         models::Conv2d(p, 4, 6, {.kernel = {2, 3}, .groups = 2});
       },
       {"weight [6, 2, 2, 3]", "bias [6]"}},
      {[](auto& p) { models::Conv2d(p, 4, 6, {.bias = false}); }, {"weight [6, 4, 3, 3]"}},
      {[](auto& p) {
         models::ConvTranspose2d(p, 4, 6, {.kernel = {2, 3}, .groups = 2});
       },
       {"weight [4, 3, 2, 3]", "bias [6]"}},
      {[](auto& p) { models::ConvTranspose2d(p, 4, 6, {.bias = false}); }, {"weight [4, 6, 3, 3]"}},
      {[](auto& p) { models::MultiHeadAttention(p, 6, {.heads = 3}); },
       {"query.weight [6, 6]", "query.bias [6]", "key.weight [6, 6]", "key.bias [6]",
        "value.weight [6, 6]", "value.bias [6]", "output.weight [6, 6]", "output.bias [6]"}},
      {[](auto& p) { models::MultiHeadAttention(p, 6, {.heads = 3, .fused_qkv = true}); },
       {"qkv.weight [6, 18]", "qkv.bias [18]", "output.weight [6, 6]", "output.bias [6]"}},
      {[](auto& p) { models::Embedding(p, 5, 2); }, {"weight [5, 2]"}}};
  for (const Row& row : rows) {
    const Parameters parameters(Device::cpu());
    row.make(parameters);
    CHECK(declared(parameters) == row.lines);
  }
}

TEST_CASE("a model that does not fit declares nothing, so that a smaller one may take its names",
          "[models][row11]") {
  using Make = std::function<void(const Parameters&)>;
  const std::vector<Make> makes = {
      [](const Parameters& p) { models::Dense(p, 3, 4); },
      [](const Parameters& p) {
        models::Mlp(p, {3, 4, 2});
      },
      [](const Parameters& p) { models::Lstm(p, 3, {.hidden = 2, .layers = 2}); },
      [](const Parameters& p) { models::Forecaster(p.scope("f"), 1, {.hidden = 2}); },
      [](const Parameters& p) { models::Classifier(p, 5, 3, {.hidden = 4, .layers = 2}); }};
  for (const Make& make : makes) {
    const Parameters parameters(Device::cpu());
    parameters.declare("before", {1}, initializers::zeros());
    parameters.state("mean", {1});
    const Bytes bytes;
    std::size_t n = 0;
    for (; fails_at(n, [&] { make(parameters); }); ++n) {
      CHECK(declared(parameters) == Lines{"before [1]"});
      CHECK(bytes.now() == 0);
    }
    CHECK(n + 1 == parameters.entries().size());  // one allocation for each parameter
    CHECK(parameters.states().size() == 1);
  }
}

TEST_CASE("a model of one's own that does not fit leaves nothing when an attempt makes it",
          "[models][row11]") {
  struct Own {
    models::Dense hidden, out;
    explicit Own(const Parameters& p) : hidden(p.scope("hidden"), 3, 4), out(p.scope("out"), 4, 2) {
      p.state("mean", {2});
    }
  };
  for (const bool nested : {false, true}) {
    const Parameters parameters(Device::cpu());
    parameters.declare("before", {1}, initializers::zeros());
    const Bytes bytes;
    const auto make = [&] {
      return attempt([&] {
        parameters.scope("other").declare("one", {1}, initializers::zeros());
        return nested ? attempt([&] { return Own(parameters); }) : Own(parameters);
      });
    };
    std::size_t n = 0;
    for (; fails_at(n, make); ++n) {
      CHECK(declared(parameters) == Lines{"before [1]"});
      CHECK(parameters.states().empty());
      CHECK(bytes.now() == 0);
    }
    CHECK(n == 6);
    CHECK(parameters.entries().size() == 6);
    CHECK(parameters.states().size() == 1);
  }
}

TEST_CASE("what an optimizer has updated stays declared when its attempt fails", "[row11]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  const Tensor x = Tensor::full({2, 3}, 1);
  CHECK_THROWS_AS(attempt([&] {
                    const models::Dense dense(parameters.scope("kept"), 3, 2);
                    optim::Adam().minimize(mean(square(dense(x))), parameters);
                    const models::Dense late(parameters.scope("late"), 3, 2);
                    const Parameters gone(Device::cpu());
                    const models::Dense of_gone(gone, 3, 2);
                    throw std::runtime_error("half-way");
                  }),
                  std::runtime_error);
  CHECK(declared(parameters) == Lines{"kept.weight [3, 2]", "kept.bias [2]"});
  CHECK(parameters.scope("kept").slots().size() == 4);
  const models::Dense late(parameters.scope("late"), 3, 2);
  CHECK_NOTHROW(optim::Adam().minimize(mean(square(late(x))), parameters));
}

TEST_CASE("an LSTM and a GRU start within 1 / sqrt(hidden), a forget gate's bias 1 above",
          "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Parameters parameters(Device::cpu(), Seed{4}, dtype);
  models::Lstm(parameters.scope("lstm"), 3, {.hidden = 100});
  models::Gru(parameters.scope("gru"), 3, {.hidden = 100, .bidirectional = true});
  CHECK(parameters.scope("gru").entries().size() == 6);
  for (const auto& [name, tensor] : parameters.entries()) {
    CAPTURE(name);
    const std::vector<double> values = values_of(tensor);
    const bool is_of_gates = name == "lstm.0.bias";
    const std::size_t part = is_of_gates ? 100 : values.size();
    for (std::size_t begin = 0; begin < values.size(); begin += part) {
      const double middle = is_of_gates && begin == 100 ? 1 : 0;
      const auto [low, high] = range(values, begin, begin + part);
      CHECK((low >= middle - 0.1 && low < middle - 0.09));
      CHECK((high <= middle + 0.1 && high > middle + 0.09));
    }
  }
}

TEST_CASE("layers start as He or Glorot did, a convolution as one of its groups alone",
          "[models]") {
  struct Row {
    std::function<void(const Parameters&, Activation)> make;
    double fan_in, fan_out;
  };
  const Row rows[] = {
      {[](auto& p, Activation by) { models::Dense(p, 200, 300, by); }, 200, 300},
      {[](auto& p, Activation by) {
         models::Conv2d(p, 80, 160, {.kernel = 3, .groups = 4, .activation = by});
       },
       20 * 9, 40 * 9},
      // With a stride of 2 and a kernel of 4, 2 * 2 taps of 20 channels contribute to an output
      // element: it keeps the variance of what it is given.
      {[](auto& p, Activation by) {
         models::ConvTranspose2d(
             p, 80, 160, {.kernel = 4, .stride = 2, .padding = 1, .groups = 4, .activation = by});
       },
       20 * 4, 40 * 16}};
  for (const Row& row : rows) {
    CAPTURE(row.fan_in);
    const auto weights = [&](Activation activation) {
      const Parameters p(Device::cpu(), Seed{4});
      row.make(p, activation);
      const std::vector<double> bias = values_of(p["bias"]);
      CHECK(range(bias, 0, bias.size()) == std::pair<double, double>(0, 0));
      return values_of(p["weight"]);
    };
    const std::vector<double> he = weights(Activation::relu), glorot = weights(Activation::tanh);
    double square_sum = 0;
    for (const double value : he) square_sum += value * value;
    CHECK(std::abs(square_sum / static_cast<double>(he.size()) / (2 / row.fan_in) - 1) < 0.03);
    const double limit = std::sqrt(6 / (row.fan_in + row.fan_out));
    const auto [low, high] = range(glorot, 0, glorot.size());
    CHECK((low >= -limit && low < -0.99 * limit && high <= limit && high > 0.99 * limit));
  }

  const auto first = [](Activation activation) {
    const Parameters p(Device::cpu(), Seed{4});
    models::Dense(p, 3, 2, activation);
    return p["weight"];
  };
  using enum Activation;
  for (const Activation rectifier : {gelu, gelu_tanh, silu, leaky_relu, elu})
    CHECK(bit_equal(first(rectifier), first(relu)));
  for (const Activation other : {none, sigmoid, softplus})
    CHECK(bit_equal(first(other), first(tanh)));
}

TEST_CASE("a transposed convolution's fan-in divides by both strides, and is one tap at least",
          "[models]") {
  const auto bound = [](const Size2d& stride) {
    const Parameters p(Device::cpu(), Seed{4});
    models::ConvTranspose2d(p, 2, 300, {.kernel = 2, .stride = stride});
    const std::vector<double> values = values_of(p["weight"]);
    return range(values, 0, values.size()).second;
  };
  CHECK(bound({1, 2}) == bound({2, 1}));
  CHECK(bound({1, 2}) > bound(1));
  const Parameters p(Device::cpu(), Seed{4});
  models::ConvTranspose2d(p, 1, 2, {.kernel = 1, .stride = 3, .activation = Activation::relu});
  for (const double value : values_of(p["weight"])) CHECK(std::isfinite(value));
}

TEST_CASE("layers without a bias are those with a bias of zero", "[models]") {
  const Parameters with(Device::best(), Seed{3}), without(Device::best(), Seed{3});
  const models::DenseOptions relu{.activation = Activation::relu};
  const models::Dense a(with.scope("a"), 4, 3, relu);
  const models::Dense b(without.scope("a"), 4, 3, {.activation = Activation::relu, .bias = false});
  const models::Conv2d c(with.scope("c"), 2, 3, {.activation = Activation::tanh});
  const models::Conv2d d(without.scope("c"), 2, 3, {.bias = false, .activation = Activation::tanh});
  const Tensor x = normal({5, 4}, {.device = Device::best()});
  const Tensor image = normal({2, 2, 5, 6}, {.device = Device::best()});
  CHECK(bit_equal(a(x), b(x)));
  CHECK(bit_equal(c(image), d(image)));
  CHECK(without.entries().size() == 2);
  const models::Conv2d wide(without.scope("w"), 2, 4,
                            {.stride = 2, .padding = 1, .groups = 2, .bias = false});
  CHECK(wide(image).shape() == Shape{2, 4, 3, 3});
}

TEST_CASE("a transposed convolution passes all of its options on", "[models]") {
  const Parameters p(Device::cpu(), Seed{4});
  const models::ConvTranspose2d conv(p, 4, 2,
                                     {.kernel = {2, 3},
                                      .stride = {2, 3},
                                      .padding = {1, 0},
                                      .output_padding = {1, 2},
                                      .dilation = {3, 2},
                                      .groups = 2,
                                      .activation = Activation::softplus});
  p["bias"].impl()->storage->fill(63);
  const Tensor x = normal({1, 4, 2, 2});
  const ConvTranspose2dOptions options{.stride = {2, 3},
                                       .padding = {1, 0},
                                       .output_padding = {1, 2},
                                       .dilation = {3, 2},
                                       .groups = 2};
  CHECK(bit_equal(conv(x), softplus(conv_transpose2d(x, p["weight"], p["bias"], options))));
}

TEST_CASE("a sequence in two parts, with the state between them, is the whole", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{2}, DType::f64);
  const models::Lstm lstm(parameters, 3, {.hidden = 5, .layers = 2});
  const Tensor x = Golden("lstm_f64")["x"];  // [6, 9, 3]
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return slice(x, begin, end, {.axis = 1});
  };
  const models::LstmOutput whole = lstm(x);
  const models::LstmOutput first = lstm(part(0, 4));
  const models::LstmOutput second = lstm(part(4, 9), Phase::inference, first.state());
  CHECK(distance(second.hidden, whole.hidden) < 1e-14);
  CHECK(distance(second.cell, whole.cell) < 1e-14);
  CHECK(distance(last_step(second.sequence), last_step(whole.sequence)) < 1e-14);
}

TEST_CASE("models say what they cannot do", "[models]") {
  const Parameters parameters(Device::cpu());
  CHECK_ERROR(models::Dense(parameters, 0, 3), Error, "[dense] in = 0 is below 1");
  CHECK_ERROR(models::Dense(parameters, 3, std::int64_t{1} << 62), Error, "more than a tensor");
  CHECK_ERROR(models::Mlp(parameters, {3}), Error, "at least two sizes");
  CHECK_ERROR(models::Lstm(parameters, 1, {.layers = 0}), Error, "[lstm] layers = 0 is below 1");
  CHECK_ERROR(models::Lstm(parameters, 1, {.dropout = 1}), Error, "outside [0, 1)");
  CHECK_ERROR(models::Gru(parameters, 1, {.dropout = -0.5}), Error,
              "[gru] dropout = -0.500000 is outside [0, 1)");
  CHECK_ERROR(models::Gru(parameters, 0), Error, "[gru] in = 0 is below 1");
  CHECK_ERROR(models::Gru(parameters, 1, {.hidden = 0}), Error, "[gru] hidden = 0 is below 1");
  CHECK_ERROR(models::Classifier(parameters, 1, 2, {.layers = -1}), Error, "is below 0");
  CHECK_ERROR(models::Conv2d(parameters, 0, 3), Error, "[conv2d] in = 0 is below 1");
  CHECK_ERROR(models::Conv2d(parameters, 4, 3, {.groups = 2}), Error,
              "[conv2d] 4 and 3 channels do not make 2 groups (");
  CHECK_ERROR(models::Conv2d(parameters, 4, 3, {.kernel = {3, 0}}), Error,
              "[conv2d] kernel width = 0 is below 1");
  CHECK_ERROR(models::ConvTranspose2d(parameters, 4, 0), Error,
              "[conv_transpose2d] out = 0 is below 1");
  CHECK_ERROR(models::ConvTranspose2d(parameters, 3, 4, {.groups = 2}), Error,
              "[conv_transpose2d] 3 and 4 channels do not make 2 groups (");
  CHECK_ERROR(models::ConvTranspose2d(parameters, 1 << 30, 1 << 30, {.kernel = 1 << 10}), Error,
              "[conv_transpose2d] the shape [1073741824, 1073741824, 1024, 1024] has more");
  const models::ConvTranspose2d still(Parameters(Device::cpu()), 1, 1, {.stride = 0});
  CHECK_ERROR(still(Tensor::zeros({1, 1, 3, 3})), Error, "[conv_transpose2d]");
  CHECK_ERROR(models::Embedding(parameters, 3, 0), Error, "[embedding] features = 0 is below 1");
  CHECK_ERROR(models::MultiHeadAttention(parameters, 8, {.heads = 3}), Error,
              "[multi_head_attention] 3 heads do not divide 8 features (");
  CHECK(parameters.entries().empty());
  const models::MultiHeadAttention attention(parameters.scope("attention"), 4);
  CHECK_ERROR_HERE(
      attention(Tensor::zeros({2, 4})), ShapeError,
      "[multi_head_attention] takes x [batch, length, features]; the input is f32[2, 4] (");
  const models::MultiHeadAttention fused(parameters.scope("fused"), 4, {.fused_qkv = true});
  const Tensor sequences = Tensor::zeros({1, 2, 4});
  CHECK_ERROR_HERE(fused(sequences, sequences), Error,
                   "[multi_head_attention] with fused_qkv attends to its own input");
  const models::Dense dense(parameters, 3, 2);
  CHECK_ERROR_HERE(models::Dense(parameters, 3, 2), Error, "");
  CHECK_ERROR_HERE(dense(Tensor::zeros({4, 5})), ShapeError, "[dense]");
  const models::Embedding table(parameters.scope("table"), 3, 2);
  CHECK_ERROR_HERE(table(Tensor()), Error, "");
  for (const bool both : {false, true}) {
    const models::Gru gru(Parameters(Device::cpu()), 3, {.hidden = 5, .bidirectional = both});
    const Tensor hidden = Tensor::zeros({1});
    CHECK_ERROR_HERE(gru(Tensor::zeros({2, 3}), Phase::inference, hidden), ShapeError,
                     "[gru] takes x [batch, time, in]");
    CHECK_ERROR_HERE(gru(Tensor::zeros({2, 4, 3}), Phase::inference, hidden), ShapeError, "[gru]");
  }
}

TEST_CASE("attention of several heads takes sequences of open number and length, and a memory",
          "[models]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {kOpen, kOpen, 6});
  const Tensor memory = graph.placeholder("memory", DType::f32, {kOpen, 4, 6});
  const Parameters eager(Device::cpu(), Seed{3}), symbolic(graph, Seed{3});
  const models::MultiHeadAttention now(eager, 6, {.heads = 3}), later(symbolic, 6, {.heads = 3});
  Session session(graph);
  session.initialize(symbolic);
  const Tensor y = later(x, memory);
  for (const std::int64_t length : {1, 5}) {
    const Tensor values = Tensor::full({2, length, 6}, 0.3), keys = eager["key.weight"];
    const Tensor kept = reshape(slice(concat({keys, keys}), 0, 8), {2, 4, 6});
    const Tensor got = session.run(y, {{x, values}, {memory, kept}});
    CHECK(distance(got, now(values, kept)) < 1e-6);
  }
  CHECK_ERROR(now(Tensor::zeros({2, 3, 6}), Tensor::zeros({3, 6})), ShapeError,
              "takes x [batch, length, features]; the input is f32[3, 6]");
}

TEST_CASE("a forecaster learns without the gradient of its whole sequence", "[models]") {
  const std::int64_t batch = 4, time = 64, hidden = 8;
  const models::LstmOptions options{.hidden = hidden, .layers = 2};
  // The plan's bytes if nothing shared memory.
  const auto bytes = [&](bool from_sequence) {
    Graph graph;
    const Parameters parameters(graph);
    const Tensor x = graph.placeholder("x", DType::f32, {batch, time, 1});
    const Tensor forecast =
        from_sequence
            ? models::Dense(parameters.scope("head"), hidden, 1)(last_step(
                  models::Lstm(parameters.scope("lstm"), 1, options)(x, Phase::training).sequence))
            : models::Forecaster(parameters, 1, options)(x, Phase::training);
    const Tensor loss = optim::Adam().minimize(sum(square(forecast)), parameters);
    return graph.plan({loss}, {{x, {batch, time, 1}}}, Device::cpu()).naive_bytes;
  };
  // In its place are the final hidden states, [2, 4, 8], and their gradient, 512 bytes each. A
  // graph that reads the sequence alone omits these states.
  const auto sequence = static_cast<std::size_t>(batch * time * hidden) * sizeof(float);
  CHECK(bytes(true) - bytes(false) == sequence - 2 * 512);
}

}  // namespace ebb::tests
