// Last reads free their tensors: temporaries of an expression, and the tape's in backward().
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/poisoned.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;
using ebb::tests::Poisoned;

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::int64_t kRow = kBlock / sizeof(float);

using Values = std::vector<float>;

struct Net {
  Parameters parameters{Device::cpu(), Seed{3}};
  models::Mlp mlp{parameters.scope("mlp"), {6, 16, 16, 4}, {.activation = Activation::tanh}};
  models::Lstm lstm{parameters.scope("lstm"), 4, {.hidden = 5, .layers = 3, .dropout = 0.3}};
  Tensor gate = parameters.declare("gate", {3, 7, 5}, initializers::uniform(0.5, 1));
  Tensor x = uniform({3 * 7, 6});
  Tensor labels = Tensor::from<std::int64_t>({0, 4, 2});

  // Has every kind of gradient rule that takes over memory of the tape.
  Tensor loss() const {
    set_seed({5});  // one mask
    const Tensor steps = reshape(mlp(x), {3, 7, 4});
    const Tensor sequence = lstm(steps, Phase::training).sequence;
    const Tensor mixed = sigmoid(sequence) * tanh(gate) / sqrt(exp(gate) + square(sequence));
    const Tensor scores = sum(relu(mixed - 0.1) + log(gate) - 1 / gate, {.axes = {1}});
    return softmax_cross_entropy(
        matmul(softmax(scores), matmul(scores, scores, {.transpose_a = true})), labels);
  }
  std::vector<Values> gradients() const {
    std::vector<Values> all;
    for (const Parameters::Entry& entry : parameters.entries())
      all.push_back(entry.tensor.grad().to_vector<float>());
    return all;
  }
};

Tensor first_row(const Tensor& x) { return slice(x * 2, 0, 1); }

}  // namespace

TEST_CASE("gradients are the same bits whether backward() uses the tape up or retains it") {
  const Poisoned poisoned;
  const Net net;
  net.loss().backward();
  const auto freed = net.gradients();
  const Tensor loss = net.loss();
  for (int pass = 0; pass < 3; ++pass) {
    net.parameters.zero_grad();
    loss.backward({.retain_graph = pass < 2});
    CHECK(net.gradients() == freed);
  }
}

TEST_CASE("backward() writes over nothing that the program still holds") {
  const Poisoned poisoned;
  const Net net;
  const Tensor x = net.x.with_grad();
  const Tensor hidden =
      dense(x, net.parameters["mlp.0.weight"], net.parameters["mlp.0.bias"], Activation::tanh);
  const Tensor y = sigmoid(hidden);
  const LstmResult out =
      lstm(reshape(slice(y, 0, 12), {2, 6, 16}),
           std::vector<LstmWeights>{{uniform({16, 20}), uniform({5, 20}), Tensor::zeros({20})}});
  const Tensor loss = mean(square(out.sequence)) + sum(softmax(y) * hidden);
  const std::vector<Tensor> held = {x, hidden, y, out.sequence, out.hidden, out.cell};
  std::vector<Values> before;
  for (const Tensor& tensor : held) before.push_back(tensor.to_vector<float>());
  // Gradients by intermediate results belong to the caller too.
  const Tensors d = gradients(loss, {hidden, y}, {.retain_graph = true});
  const std::vector<Values> first = {d[0].to_vector<float>(), d[1].to_vector<float>()};
  const Tensors again = gradients(loss, {hidden, y, x});
  CHECK(d[0].to_vector<float>() == first[0]);
  CHECK(d[1].to_vector<float>() == first[1]);
  CHECK(again[0].to_vector<float>() == first[0]);
  CHECK(again[1].to_vector<float>() == first[1]);
  for (std::size_t i = 0; i < held.size(); ++i) CHECK(held[i].to_vector<float>() == before[i]);
}

TEST_CASE("a layer's backward pass computes over the gradient that it was given") {
  const Tensor x = Tensor::full({kRow, 1}, 0.5);
  const Tensor w = Tensor::full({1, kRow}, 0.1).with_grad(), b = Tensor::zeros({kRow}).with_grad();
  const std::size_t matrix = kRow * kBlock;
  const auto peak = [&](bool retain) {
    const Tensor loss = sum(dense(x, w, b, Activation::tanh));
    const Bytes pass;
    loss.backward({.retain_graph = retain});
    w.zero_grad();
    b.zero_grad();
    return pass.peak();
  };
  CHECK(peak(false) < matrix + 8 * kBlock);  // dy, and no copy of it
  CHECK(peak(true) < matrix + 8 * kBlock);   // a retained tape does not keep dy
}

TEST_CASE("an lstm's backward pass computes over what its forward pass left, unless retained") {
  const Net net;
  const Tensor x = Tensor::full({8, 64, 4}, 0.25);
  const auto peak = [&](bool retain) {
    const Tensor loss = mean(square(net.lstm(x).sequence));
    const Bytes pass;
    loss.backward({.retain_graph = retain});
    net.parameters.zero_grad();
    return pass.peak();
  };
  constexpr std::size_t chunk = 8 * 64 * 5 * sizeof(float);
  CHECK(peak(true) - peak(false) >= (4 + 1) * chunk);  // the gates' gradients, and scratch
}

TEST_CASE("what expires in an expression is free once it has been read") {
  const Tensor a = Tensor::full({kRow}, 0.5);
  const Bytes bytes;
  const auto held = [&](const Tensor&) { return bytes.now(); };
  CHECK(held(sum(exp(a))) == kBlock);
  CHECK(held(matmul(reshape(exp(a), {1, kRow}), reshape(a * 2, {kRow, 1}))) == kBlock);
  const Tensor w = a.with_grad();
  CHECK(held(mean(square(tanh(w)))) == 2 * kBlock);  // y, which the tape keeps, and the mean
  CHECK(bytes.now() == 0);
}

TEST_CASE("a step takes no more with its loss in the expression than with a named one") {
  const Net net;
  const optim::Adam adam;
  const auto named = [&] {
    const Tensor loss = mean(square(net.mlp(net.x)));
    adam.minimize(loss, net.parameters);
  };
  const auto expression = [&] { adam.minimize(mean(square(net.mlp(net.x))), net.parameters); };
  named();
  const Bytes first;
  named();
  const std::size_t wanted = first.peak();
  const Bytes second;
  expression();
  CHECK(second.peak() == wanted);
}

TEST_CASE("a tensor given twice is freed after both reads, watched or not") {
  const Poisoned poisoned;
  for (const bool watched : {false, true}) {
    memory::Watch watch;
    if (watched) watch = memory::on_pressure(Device::cpu(), [](const memory::Pressure&) {});
    const Bytes bytes;
    Tensor t = Tensor::full({kRow}, 3);
    const Tensor squared = std::move(t) * t;  // NOLINT: the point
    CHECK(squared.item<float>({0}) == 9);
    CHECK(bytes.now() == kBlock);
    CHECK_ERROR(t + 1, Error, "used its memory up");  // NOLINT
    CHECK(t.shape() == Shape{kRow});                  // NOLINT
  }
}

TEST_CASE("a function that reads a temporary operand twice is told, and can take its tensor") {
  const Tensor a = Tensor::full({4}, 2);
  const auto reads_twice = [](const Operand& x) { return tanh(x) * x; };
  const auto takes = [](const Operand& x) {
    const Tensor t = x.tensor();
    return square(t) * t;
  };
  CHECK_ERROR(reads_twice(a + 1), Error, "[multiply]");
  CHECK_NOTHROW(reads_twice(a));
  CHECK(takes(a + 1).item<float>({0}) == 27);
}

TEST_CASE("a view gives away no memory that it does not fill") {
  const Poisoned poisoned;
  const Tensor p = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Tensor q = Tensor::full({3, 2}, 10);
  const Values wanted = {12, 14, 12, 14, 12, 14};
  CHECK((slice(p * 2, 0, 1) + q).to_vector<float>() == wanted);
  CHECK((first_row(p) + q).to_vector<float>() == wanted);
  CHECK((q + first_row(p)).to_vector<float>() == wanted);
  const Tensor block = p * 2;
  CHECK((slice(block, 0, 1) + q).to_vector<float>() == wanted);
  CHECK(block.to_vector<float>() == Values{2, 4, 6, 8, 10, 12});
}

TEST_CASE("a view that fills its memory is a temporary like any other") {
  const Tensor a = Tensor::full({2, kRow / 2}, 1);
  const Bytes bytes;
  const Tensor b = reshape(a + 1, {kRow}) * 3;
  CHECK(bytes.peak() == kBlock);
  CHECK(b.item<float>({0}) == 6);
}

TEST_CASE("a cast that an operator makes of what it is given is declared") {
  const auto program = [](const Device& device) {
    const Tensor x = Tensor::full({1000}, 2, DType::f32, device).with_grad();
    const Tensor mask = Tensor::full({1000}, 1, DType::u8, device) == (x.detach() > 1);
    (sum(x * mask) + mean(mask)).backward();
  };
  const memory::Prediction predicted = memory::predict(Device::cpu(), program);
  const Bytes used;
  program(Device::cpu());
  CHECK(used.peak() == predicted.peak_bytes);
  CHECK(used.peak() >= 2 * 8000);  // u8 and bool as i64
}
