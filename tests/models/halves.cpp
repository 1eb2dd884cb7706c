// 16-bit models: they train, alike in both modes, and keep half the bytes.
#include <cmath>
#include <functional>
#include <tuple>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {
namespace {

using Loss = std::function<Tensor(const Tensor& x, const Tensor& y)>;
using Doubles = std::vector<double>;

// Data to learn from, and a model that declares its parameters when it is made.
struct HalfTask {
  Tensor x, y;
  Loss (*model)(const Parameters& parameters);
};

// Task: which of two numbers is larger.
HalfTask larger_of_two(DType dtype) {
  set_seed(Seed{3});
  const Tensor x = uniform({48, 2}, {.low = -1});
  const std::vector<float> values = x.to_vector<float>();
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < values.size(); i += 2) labels.push_back(values[i] > values[i + 1]);
  return {cast(x, dtype), Tensor::from(labels, {48}), [](const Parameters& parameters) -> Loss {
            return [mlp = models::Mlp(parameters, {2, 32, 2})](const Tensor& in, const Tensor& y) {
              return softmax_cross_entropy(mlp(in), y);
            };
          }};
}

// Task: the mean of a sequence.
HalfTask mean_of_sequence(DType dtype) {
  set_seed(Seed{3});
  const Tensor x = cast(uniform({32, 8, 1}, {.low = -1}), dtype);
  return {x, mean(x, {.axes = {1}}), [](const Parameters& parameters) -> Loss {
            const models::Forecaster forecaster(parameters, 1, {.hidden = 12, .layers = 2});
            return [forecaster](const Tensor& in, const Tensor& y) {
              return mse(forecaster(in, Phase::training), y);
            };
          }};
}

const optim::Adam kAdam({.learning_rate = 1e-2});

Doubles losses_of(const HalfTask& task, DType dtype, int steps, bool as_graph = false) {
  InMode mode(as_graph, dtype);
  const Loss loss = task.model(mode.parameters);
  const auto train = mode.function({{dtype, task.x.shape()}, {task.y.dtype(), task.y.shape()}},
                                   [&](const Tensors& in) -> Tensors {
                                     return {kAdam.minimize(loss(in[0], in[1]), mode.parameters)};
                                   });
  Doubles losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(cast(train({task.x, task.y})[0], DType::f64).item<double>());
  return losses;
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

TEST_CASE("Models of 16 bits learn, and the same in both modes", "[models][half]") {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const auto& [make, steps, enough] :
         {std::tuple(&larger_of_two, 80, 0.25), std::tuple(&mean_of_sequence, 60, 0.02)}) {
      CAPTURE(name(dtype), steps);
      const HalfTask task = make(dtype);
      const Doubles losses = losses_of(task, dtype, steps);
      CHECK(losses_of(task, dtype, steps, true) == losses);
      CHECK(losses.back() < enough);
      CHECK(losses.back() < losses.front() / 2);
      // The losses are near to float's, whose initial values differ by rounding alone.
      const Doubles single = losses_of(make(DType::f32), DType::f32, steps);
      CHECK(std::abs(losses.front() - single.front()) < 0.02 * (1 + single.front()));
      CHECK(std::abs(losses.back() - single.back()) < 0.1 * single.front());
    }
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
