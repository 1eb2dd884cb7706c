#include <algorithm>
#include <cstring>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

namespace {

struct Result {
  std::vector<float> dx, dw;
  std::size_t peak;
  std::uint64_t drawn;  // by the generator
};

std::vector<float> read(const Tensor& tensor) {
  return tensor.device().is_simulated() ? std::vector<float>() : tensor.to_vector<float>();
}

// Trains eight blocks of product, tanh and dropout.
Result train(bool recomputes, const Device& device = Device::cpu()) {
  set_seed(Seed{5});
  const Tensor x = Tensor::full({64, 128}, 0.1, DType::f32, device).with_grad();
  const Tensor w = uniform({128, 128}, {.low = -0.2, .high = 0.2, .device = device}).with_grad();
  const Bytes bytes(device);
  const auto block = [w](const Tensor& in) {
    return dropout(tanh(square(tanh(matmul(in, w))) + 0.1), 0.25, Phase::training);
  };
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = recomputes ? recompute(block, y) : block(y);
  mean(y).backward();
  return {read(x.grad()), read(w.grad()), bytes.peak(), detail::generator().counter};
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

}  // namespace

TEST_CASE("recompute gives the same gradients bit for bit, dropout included, in less memory") {
  const Result plain = train(false), again = train(true);
  CHECK(same(plain.dx, again.dx));
  CHECK(same(plain.dw, again.dw));
  CHECK(again.drawn == plain.drawn);                 // the second pass has drawn nothing of its own
  for (const auto* values : {&plain.dx, &plain.dw})  // so that a wrong mask would show
    CHECK(std::count_if(values->begin(), values->end(), [](float v) { return v != 0; }) > 1000);
  CHECK(again.peak < plain.peak * 2 / 3);
  const Device twin = Device::cpu().twin();
  CHECK(train(false, twin).peak == plain.peak);
  CHECK(train(true, twin).peak == again.peak);
}

TEST_CASE("recompute of several tensors differentiates through each, to higher orders") {
  const Tensor a = Tensor::full({}, 2, DType::f64).with_grad();
  const Tensor b = Tensor::full({}, 3, DType::f64).with_grad();
  const Tensors y = recompute(
      [](const Tensors& in) -> Tensors {
        return {in[0] * in[1], square(in[0])};
      },
      {a, b});
  const Tensors first = gradients(y[0] * y[1], {a, b}, {.create_graph = true});  // a^3 b
  CHECK(first[0].item<double>() == 36);
  CHECK(first[1].item<double>() == 8);
  CHECK(gradients(first[0], {b})[0].item<double>() == 12);
}

TEST_CASE("recompute that throws half-way leaves nothing behind") {
  const Tensor a = Tensor::full({128}, 2).with_grad();
  const Bytes bytes;
  CHECK_THROWS(recompute(
      [](const Tensor& in) -> Tensor {
        const Tensor y = tanh(in);
        throw std::runtime_error("half-way");
      },
      a));
  CHECK(bytes.now() == 0);
  CHECK(tanh(a).requires_grad());
}

TEST_CASE("a tensor that is updated with what was recomputed from it goes with its handle") {
  const Tensor w = Tensor::full({1024}, 2).with_grad();
  const Bytes bytes;
  {
    const Tensor h = w * 2;
    add_assign(h, recompute([](const Tensor& in) { return tanh(in); }, h));
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("recompute notices that what it would read again has been updated since") {
  const Tensor w = Tensor::full({4}, 2).with_grad();
  const Tensor constant = Tensor::full({4}, 3);
  const auto run = [&](const Tensor& updated) {
    const Tensor x = Tensor::full({4}, 0.5).with_grad();
    const Tensor y = recompute([&](const Tensor& in) { return square(in * w) * constant; }, x);
    add_assign(updated.defined() ? updated : x, 1);
    sum(y).backward();
  };
  CHECK_ERROR(run(w), Error, "at version 0, has been updated in place and is at version 1");
  CHECK_ERROR(run(constant), Error, "[recompute] the backward pass has to compute again");
  CHECK_ERROR(run(Tensor()), Error, "that the function reads");
}

TEST_CASE("an outer tensor handed through recompute keeps its history, a constant gets none") {
  const Tensor w = Tensor::full({4}, 2).with_grad();
  const Tensor outer = w * 3, constant = Tensor::full({4}, 7);
  const Tensors y = recompute(
      [&](const Tensors& in) -> Tensors {
        return {in[0] * 5, outer, constant};
      },
      Tensors{w});
  CHECK_FALSE(constant.requires_grad());
  sum(y[0] + y[1] * 10 + y[2]).backward();
  CHECK(w.grad().to_vector<float>() == std::vector<float>(4, 35));
  CHECK_FALSE(constant.grad().defined());
}

TEST_CASE("a captured leaf goes, with create_graph too, by reference or after zero_grad()") {
  const Bytes bytes;
  for (const bool by_value : {false, true}) {
    const Tensor w = Tensor::full({8, 8}, 0.5).with_grad(), x = Tensor::full({8, 8}, 0.1);
    const Tensor h = by_value
                         ? recompute([w](const Tensor& in) { return tanh(matmul(in, w)); }, x)
                         : recompute([&w](const Tensor& in) { return tanh(matmul(in, w)); }, x);
    mean(square(h)).backward({.create_graph = true});
    if (by_value) w.zero_grad();
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("the backward pass frees what recompute held, and holds no result of what it repeats") {
  const Tensor w = Tensor::full({1024}, 2).with_grad();
  const Bytes bytes;
  {
    Tensor y;
    {
      const Tensor captured = Tensor::full({1024}, 3);
      y = recompute([captured](const Tensor& in) { return in * captured; }, w);
    }
    CHECK(bytes.now() == 2 * 4096);  // y, and the captured tensor
    const Tensor loss = sum(y);
    y = Tensor();
    const Bytes meanwhile;
    loss.backward();
    // dloss, dy, and one more at a time: the repeated result, then dw.
    CHECK(meanwhile.peak() == 512 + 2 * 4096);
  }
  w.zero_grad();
  CHECK(bytes.now() == 0);
}
