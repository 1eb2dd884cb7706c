// 16-bit models: they learn as those of float do, and keep half the bytes.
#include <cmath>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

namespace ebb::tests {
namespace {

const optim::Adam kAdam({.learning_rate = 1e-2});

// Checks that a model of 16 bits learns, its losses near to float's, whose initial values differ
// by rounding alone. `make` declares a model and gives its loss.
template <class Make>
void check_learns(const Make& make, const Tensor& x, const Tensor& y, int steps, double enough) {
  const auto of = [&](DType dtype) {
    const Parameters parameters(Device::cpu(), Seed{1}, dtype);
    const auto loss = make(parameters);
    const Tensor in = cast(x, dtype), target = is_floating(y.dtype()) ? cast(y, dtype) : y;
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i)
      losses.push_back(
          cast(kAdam.minimize(loss(in, target), parameters), DType::f64).template item<double>());
    return losses;
  };
  const std::vector<double> single = of(DType::f32);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    CAPTURE(name(dtype), steps);
    const std::vector<double> losses = of(dtype);
    CHECK(losses.back() < enough);
    CHECK(losses.back() < losses.front() / 2);
    CHECK(std::abs(losses.front() - single.front()) < 0.02 * (1 + single.front()));
    CHECK(std::abs(losses.back() - single.back()) < 0.1 * single.front());
  }
}

// Bytes of tensors that a backward pass will read.
std::size_t kept_bytes(DType dtype) {
  const auto held = [] { return Bytes().of(memory::Category::activation); };
  const Parameters parameters(Device::cpu(), Seed{1}, dtype);
  const models::Mlp mlp(parameters, {256, 512, 512, 256});
  const Tensor x = Tensor::full({128, 256}, 0.5, dtype);
  const std::size_t before = held();
  const Tensor loss = mean(mlp(x));
  return held() - before;
}

}  // namespace

TEST_CASE("Models of 16 bits learn as those of float do", "[models][half]") {
  set_seed(Seed{3});
  const Tensor two = uniform({48, 2}, {.low = -1}), series = uniform({32, 8, 1}, {.low = -1});
  check_learns(
      [](const Parameters& p) {
        return [mlp = models::Mlp(p, {2, 32, 2})](const Tensor& x, const Tensor& y) {
          return softmax_cross_entropy(mlp(x), y);
        };
      },
      two, argmax(two, 1), 80, 0.25);
  check_learns(
      [](const Parameters& p) {
        const models::Forecaster forecaster(p, 1, {.hidden = 12, .layers = 2});
        return [forecaster](const Tensor& x, const Tensor& y) {
          return mse(forecaster(x, Phase::training), y);
        };
      },
      series, mean(series, {.axes = {1}}), 60, 0.02);
}

TEST_CASE("What a model of 16 bits keeps for its gradient is half as large", "[models][half]") {
  const std::size_t single = kept_bytes(DType::f32);
  CHECK(kept_bytes(DType::bf16) * 2 == single);
  CHECK(kept_bytes(DType::f16) * 2 == single);

  // A plan halves parameters, gradients and feeds as well, but not the optimizer's state.
  const auto plan_of = [](DType dtype) {
    Graph graph;
    const Parameters parameters(graph, Seed{1}, dtype);
    const Tensor x = graph.placeholder("x", dtype, {-1, 256});
    const Tensor loss = mean(models::Mlp(parameters, {256, 512, 512, 256})(x));
    return graph.plan({kAdam.minimize(loss, parameters)}, {{x, {128, 256}}}, Device::cpu());
  };
  const memory::Plan of_float = plan_of(DType::f32), of_half = plan_of(DType::bf16);
  CHECK(of_half.parameter_bytes * 2 == of_float.parameter_bytes);
  CHECK(of_half.optimizer_state_bytes == of_float.optimizer_state_bytes);
}

}  // namespace ebb::tests
