// Cost of an operator beside its arithmetic: eager with and without the tape, and as a node of a
// prepared step. Tensors are so small that kernels cost next to nothing; "kernels_alone" measures
// their cost, so that it can be subtracted.
#include <benchmark/benchmark.h>
#include <cstdlib>

#include <array>
#include <string>
#include <vector>

#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/eager/no_grad.h"
#include "ebb/graph/session.h"
#include "ebb/models/dense.h"
#include "ebb/models/lstm.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"

namespace {

using namespace ebb;

struct Add {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a + b; }
};
struct Multiply {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a * b; }
};
struct Tanh {
  Tensor operator()(const Tensor& a, const Tensor&) const { return tanh(a); }
};

// One operator on four floats. Allocates and frees its result, and with it the tape record.
template <class Op>
void run(benchmark::State& state, const Tensor& a) {
  const Tensor b = Tensor::from({5.f, 6.f, 7.f, 8.f});
  for (auto _ : state) {
    Tensor result = Op()(a, b);
    benchmark::DoNotOptimize(result);
  }
}
template <class Op>
void taped(benchmark::State& state) {
  run<Op>(state, Tensor::from({1.f, 2.f, 3.f, 4.f}).with_grad());
}
template <class Op>
void untaped(benchmark::State& state) {
  run<Op>(state, Tensor::from({1.f, 2.f, 3.f, 4.f}));
}
BENCHMARK_TEMPLATE(taped, Add);
BENCHMARK_TEMPLATE(taped, Multiply);
BENCHMARK_TEMPLATE(taped, Tanh);
BENCHMARK_TEMPLATE(untaped, Add);
BENCHMARK_TEMPLATE(untaped, Multiply);
BENCHMARK_TEMPLATE(untaped, Tanh);

// Counter "ns": nanoseconds per operator of a chain of n, forward and backward together.
void per_operator(benchmark::State& state) {
  state.counters["ns"] = benchmark::Counter(
      static_cast<double>(state.range(0)) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class Op>
void chain(benchmark::State& state) {
  const Tensor x = Tensor::from({1.f}).with_grad();
  const Tensor b = Tensor::from({1e-3f});
  for (auto _ : state) {
    Tensor y = x;
    for (std::int64_t i = 0; i < state.range(0); ++i) y = Op()(y, b);
    y.backward();
    x.zero_grad();
  }
  per_operator(state);
}
BENCHMARK_TEMPLATE(chain, Add)->Arg(1'000);
BENCHMARK_TEMPLATE(chain, Multiply)->Arg(1'000);
BENCHMARK_TEMPLATE(chain, Tanh)->Arg(1'000);

// A prepared step of n additions to one float, whose result is fetched.
void prepared(benchmark::State& state) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1});
  Tensor y = x;
  for (std::int64_t i = 0; i < state.range(0); ++i) y = y + x;
  Session session(graph);
  PreparedStep step = session.prepare(y, {x});
  const Tensor value = Tensor::from({1.f});
  for (auto _ : state) {
    Tensor result = step(value);
    benchmark::DoNotOptimize(result);
  }
}

// The kernels of the same additions, called from a plain loop.
void kernels_alone(benchmark::State& state) {
  flush_denormals_on_this_thread();
  const Spec spec{DType::f32, {1}};
  const Kernel kernel = kernel_of(add_op.tensors, Device::cpu().runtime()).run;
  const Attributes attributes = NumberOperand{};
  float x = 1;
  std::array<float, 2> y = {1, 1};
  std::vector<std::array<Buffer, 3>> nodes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.range(0)); ++i)
    nodes.push_back({Buffer{&y[i % 2], spec}, Buffer{&x, spec}, Buffer{&y[(i + 1) % 2], spec}});
  for (auto _ : state) {
    for (const auto& buffers : nodes) {
      const std::span<const Buffer> all(buffers);
      if (!kernel({.inputs = all.first(2), .outputs = all.last(1), .attributes = &attributes}).ok())
        std::abort();
    }
    benchmark::ClobberMemory();
  }
}
BENCHMARK(prepared)->Arg(1)->Arg(10)->Arg(100)->Arg(1'000);
BENCHMARK(kernels_alone)->Arg(1)->Arg(10)->Arg(100)->Arg(1'000);

// A whole step of a network so small that only the mode's overhead counts: dense 8-16-4 on four
// rows, with Adam.
struct Tiny {
  const Tensor x = Tensor::full({4, 8}, 0.1);
  const Tensor y = Tensor::from({0, 1, 2, 3});
  const optim::Adam adam;

  Tensor train(const Parameters& parameters, const models::Mlp& model, const Tensor& in,
               const Tensor& labels) const {
    return adam.minimize(softmax_cross_entropy(model(in), labels), parameters);
  }
};

void tiny_mlp_eager(benchmark::State& state) {
  const Tiny tiny;
  const Parameters parameters(Device::cpu());
  const models::Mlp model(parameters, {8, 16, 4});
  for (auto _ : state) {
    Tensor loss = tiny.train(parameters, model, tiny.x, tiny.y);
    benchmark::DoNotOptimize(loss);
  }
}
void tiny_mlp_graph(benchmark::State& state) {
  const Tiny tiny;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4, 8});
  const Tensor y = graph.placeholder("y", DType::i32, {4});
  const Parameters parameters(graph);
  const models::Mlp model(parameters, {8, 16, 4});
  const Tensor train = tiny.train(parameters, model, x, y);
  Session session(graph);
  session.initialize();
  PreparedStep step = session.prepare(train, {x, y});
  for (auto _ : state) {
    Tensor loss = step(tiny.x, tiny.y);
    benchmark::DoNotOptimize(loss);
  }
}
BENCHMARK(tiny_mlp_eager);
BENCHMARK(tiny_mlp_graph);

// A step of an 8-layer LSTM with 8,192 units at batch 4,096 and 256 steps, which no device holds:
// as one operator, and cell by cell. Alone on a twin, and predicted: with what the prediction finds
// out.
void large_lstm(const Device& device, bool by_cells) {
  constexpr std::int64_t kUnits = 8192, kRows = 4096, kSteps = 256;
  constexpr int kLayers = 8;
  const Parameters params(device);
  const Tensor x = Tensor::zeros({kRows, kSteps, kUnits}, DType::f32, device);
  if (!by_cells) {
    const models::Lstm lstm(params, kUnits, {.hidden = kUnits, .layers = kLayers});
    optim::Adam().minimize(mean(square(lstm(x, Phase::training).sequence)), params);
    return;
  }
  std::vector<models::Dense> gates;
  std::vector<Tensor> hidden, cell;
  for (int layer = 0; layer < kLayers; ++layer) {
    gates.emplace_back(params.scope(std::to_string(layer)), 2 * kUnits, 4 * kUnits);
    hidden.push_back(Tensor::zeros({kRows, kUnits}, DType::f32, device));
    cell.push_back(hidden.back());
  }
  for (std::int64_t step = 0; step < kSteps; ++step) {
    Tensor in = select(x, 1, step);
    for (std::size_t i = 0; i < gates.size(); ++i) {
      const auto [input, forget, update, output] =
          chunk<4>(gates[i](concat({in, hidden[i]}, 1)), 1);
      cell[i] = sigmoid(forget) * cell[i] + sigmoid(input) * tanh(update);
      in = hidden[i] = sigmoid(output) * tanh(cell[i]);
    }
  }
  optim::Adam().minimize(mean(square(hidden.back())), params);
}

void large_lstm_on_a_twin(benchmark::State& state) {
  for (auto _ : state)
    large_lstm(Device::simulated("h200", std::size_t{141} << 30), state.range(0) != 0);
}
void large_lstm_predicted(benchmark::State& state) {
  const Device device = Device::simulated("h200", std::size_t{141} << 30);
  for (auto _ : state) {
    const memory::Prediction prediction =
        memory::predict(device, [&](const Device& twin) { large_lstm(twin, state.range(0) != 0); });
    if (prediction.fits || prediction.least_limit_bytes < prediction.peak_bytes)
      state.SkipWithError("the prediction is wrong");
  }
}
BENCHMARK(large_lstm_on_a_twin)->Arg(0)->Arg(1);
BENCHMARK(large_lstm_predicted)->Arg(0)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
