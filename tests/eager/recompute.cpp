#include <cstring>

#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/recompute.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

namespace {

struct Result {
  std::vector<float> dx, dw;
  std::size_t peak;
};

std::vector<float> read(const Tensor& tensor) {
  return tensor.device().is_simulated() ? std::vector<float>() : tensor.to_vector<float>();
}

// Eight blocks of product, tanh and dropout.
Result train(bool recomputes, const Device& device = Device::cpu()) {
  set_seed(Seed{5});
  const Tensor x = Tensor::full({64, 128}, 0.1, DType::f32, device).with_grad();
  const Tensor w = uniform({128, 128}, {.low = -0.2, .high = 0.2, .device = device}).with_grad();
  const Bytes bytes(device);
  const auto block = [w](const Tensor& in) {
    return dropout(tanh(square(tanh(matmul(in, w))) * 0.5), 0.25, Phase::training);
  };
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = recomputes ? recompute(block, y) : block(y);
  mean(y).backward();
  return {read(x.grad()), read(w.grad()), bytes.peak()};
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

}  // namespace

TEST_CASE("recompute gives the same gradients bit for bit, dropout included, in less memory") {
  const Result plain = train(false), again = train(true);
  CHECK(same(plain.dx, again.dx));
  CHECK(same(plain.dw, again.dw));
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
