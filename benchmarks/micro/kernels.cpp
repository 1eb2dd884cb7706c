// The CPU kernels alone: products, pointwise, a whole LSTM, Adam. The last argument of each is the
// number of threads. GFLOP/s and GB/s are counters; bytes are the least that must move.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/optim/kernels/rules.h"

namespace {

using namespace ebb;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// A kernel and all memory it needs, filled with small numbers.
class Call {
 public:
  Call(Kernel kernel, MemoryRule rule, Attributes attributes, std::vector<Spec> inputs,
       std::vector<Spec> outputs, bool with_reserve = false, const IndexSet& destroyed = {})
      : kernel_(kernel), attributes_(attributes), destroyed_(destroyed) {
    MemoryNeeds needs;
    if (rule != nullptr)
      needs = rule({.inputs = inputs,
                    .outputs = outputs,
                    .attributes = &attributes_,
                    .destroyed = &destroyed_});
    if (with_reserve)
      outputs.push_back({DType::u8, {static_cast<std::int64_t>(needs.reserve_bytes)}});
    for (const Spec& spec : inputs) inputs_.push_back({memory(spec.bytes(), spec.dtype), spec});
    for (const Spec& spec : outputs) outputs_.push_back({memory(spec.bytes(), spec.dtype), spec});
    workspace_ = memory(needs.workspace_bytes, DType::f32);
  }
  void operator()() const {
    const Status status = kernel_({.inputs = inputs_,
                                   .outputs = outputs_,
                                   .attributes = &attributes_,
                                   .workspace = workspace_,
                                   .destroyed = &destroyed_});
    if (!status.ok()) std::abort();  // a kernel that refuses must not be timed
  }
  Buffer& input(std::size_t i) { return inputs_[i]; }
  Buffer& output(std::size_t i) { return outputs_[i]; }

 private:
  void* memory(std::size_t bytes, DType type) {
    void* at = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    owned_.emplace_back(at);
    if (type == DType::f32) {
      for (std::size_t i = 0; i < bytes / 4; ++i)
        static_cast<float*>(at)[i] = static_cast<float>(i * 7919 % 1999) * 1e-4f - 0.1f;
    } else if (type == DType::f64) {
      for (std::size_t i = 0; i < bytes / 8; ++i)
        static_cast<double*>(at)[i] = static_cast<double>(i * 7919 % 1999) * 1e-4 - 0.1;
    } else {
      for (std::size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(at)[i] = 0;
    }
    return at;
  }
  Kernel kernel_;
  Attributes attributes_;
  IndexSet destroyed_;
  std::vector<Buffer> inputs_, outputs_;
  void* workspace_ = nullptr;
  std::vector<std::unique_ptr<void, Free>> owned_;
};

template <class Calls>
void measure(benchmark::State& state, const Calls& calls, std::int64_t threads, double operations,
             double bytes) {
  flush_denormals_on_this_thread();
  Workers::instance().set_threads(static_cast<int>(threads));
  calls();
  for (auto _ : state) calls();
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (operations > 0) state.counters["FLOP/s"] = benchmark::Counter(operations, rate);
  if (bytes > 0) state.counters["bytes/s"] = benchmark::Counter(bytes, rate);
}

void matmul(benchmark::State& state) {
  const std::int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool ta = state.range(3) == 1, tb = state.range(3) == 2;
  const Call call(
      cpu::matmul, nullptr, MatmulAttributes{.transpose_a = ta, .transpose_b = tb},
      {{DType::f32, ta ? Shape{k, m} : Shape{m, k}}, {DType::f32, tb ? Shape{n, k} : Shape{k, n}}},
      {{DType::f32, {m, n}}});
  measure(state, call, state.range(4), 2.0 * static_cast<double>(m * k * n), 0);
}
void product_arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "n", "transposed", "threads"});
  for (std::int64_t threads : {1, 2}) {
    b->Args({128, 784, 512, 0, threads})
        ->Args({784, 128, 512, 1, threads})
        ->Args({128, 512, 784, 2, threads});
    b->Args({128, 512, 512, 0, threads})
        ->Args({512, 128, 512, 1, threads})
        ->Args({128, 512, 512, 2, threads});
    b->Args({128, 512, 10, 0, threads})
        ->Args({2048, 64, 1024, 0, threads})
        ->Args({256, 2048, 1024, 1, threads});
  }
}
BENCHMARK(matmul)->Apply(product_arguments)->UseRealTime();

template <class F, DType kType = DType::f32>
void map(benchmark::State& state) {
  const Spec spec{kType, {state.range(0)}};
  measure(state, Call(cpu::map<F>, nullptr, {}, {spec}, {spec}), state.range(1), 0,
          2.0 * static_cast<double>(spec.bytes()));
}
template <Kernel kernel>
void zip(benchmark::State& state) {
  const Spec spec{DType::f32, {state.range(0)}};
  measure(state, Call(kernel, nullptr, NumberOperand{}, {spec, spec}, {spec}), state.range(1), 0,
          3.0 * static_cast<double>(spec.bytes()));
}
void pointwise_arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"elements", "threads"})
      ->Args({4, 1})
      ->Args({65'536, 1})
      ->Args({1 << 20, 1})
      ->Args({1 << 20, 2});
}
BENCHMARK(map<functors::Tanh>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Sigmoid>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Exp>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Log>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Tanh, DType::f64>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Sigmoid, DType::f64>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Exp, DType::f64>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Log, DType::f64>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(map<functors::Relu>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(zip<cpu::zip<functors::Add>>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(zip<cpu::pair<functors::ReluGradient>>)->Apply(pointwise_arguments)->UseRealTime();

void dropout(benchmark::State& state) {
  const Spec spec{DType::f32, {state.range(0)}};
  measure(
      state,
      Call(cpu::dropout, nullptr, RandomAttributes{.a = 0.1}, {spec, {DType::i64, {2}}}, {spec}),
      state.range(1), 0, 2.0 * static_cast<double>(spec.bytes()));
}
BENCHMARK(dropout)->Apply(pointwise_arguments)->UseRealTime();

template <DType kType>
void normal(benchmark::State& state) {
  const Spec spec{kType, {state.range(0)}};
  measure(state, Call(cpu::normal, nullptr, RandomAttributes{}, {{DType::i64, {2}}}, {spec}),
          state.range(1), 0, static_cast<double>(spec.bytes()));
}
BENCHMARK(normal<DType::f32>)->Apply(pointwise_arguments)->UseRealTime();
BENCHMARK(normal<DType::f64>)->Apply(pointwise_arguments)->UseRealTime();

void sum(benchmark::State& state) {
  const Spec spec{DType::f32, {state.range(0), state.range(1)}};
  const auto axes = static_cast<std::uint32_t>(state.range(2));
  Shape out;
  if ((axes & 1) == 0) out.push_back(spec.shape[0]);
  if ((axes & 2) == 0) out.push_back(spec.shape[1]);
  measure(state,
          Call(cpu::sum, cpu::sum_memory, Reduction{.axes = axes}, {spec}, {{DType::f32, out}}),
          state.range(3), 0, static_cast<double>(spec.bytes()));
}
BENCHMARK(sum)
    ->ArgNames({"rows", "columns", "axes", "threads"})
    ->Args({2, 2, 3, 1})
    ->Args({128, 512, 1, 1})
    ->Args({2048, 1024, 1, 1})
    ->Args({2048, 1024, 2, 1})
    ->Args({2048, 1024, 3, 1})
    ->Args({2048, 1024, 3, 2})
    ->Args({500'000, 3, 2, 1})
    ->Args({200'000, 10, 2, 1})
    ->Args({65'536, 32, 2, 1})
    ->Args({20'000, 100, 2, 1})
    ->UseRealTime();

void softmax(benchmark::State& state) {
  const Spec spec{DType::f32, {state.range(0), state.range(1)}};
  measure(state, Call(cpu::softmax, nullptr, {}, {spec}, {spec}), 1, 0,
          2.0 * static_cast<double>(spec.bytes()));
}
BENCHMARK(softmax)
    ->ArgNames({"rows", "classes"})
    ->Args({128, 10})
    ->Args({128, 1000})
    ->UseRealTime();

void softmax_cross_entropy(benchmark::State& state) {
  const std::int64_t n = state.range(0), classes = state.range(1);
  measure(state,
          Call(cpu::softmax_cross_entropy, cpu::softmax_cross_entropy_memory, {},
               {{DType::f32, {n, classes}}, {DType::i32, {n}}}, {{DType::f32, {}}}),
          1, 0, 0);
}
BENCHMARK(softmax_cross_entropy)
    ->ArgNames({"rows", "classes"})
    ->Args({128, 10})
    ->Args({128, 1000})
    ->UseRealTime();

void adam(benchmark::State& state) {
  const Spec spec{DType::f32, {state.range(0)}};
  Call call(cpu::adam_update, nullptr, optim::AdamAttributes{},
            {spec, spec, spec, spec, {DType::i64, {}}, {DType::f64, {}}}, {});
  *call.input(4).as<std::int64_t>() = 1;
  *call.input(5).as<double>() = 1e-3;
  for (std::int64_t i = 0; i < spec.shape[0]; ++i) call.input(2).as<float>()[i] = 0.01f;
  measure(state, call, state.range(1), 0, 7.0 * static_cast<double>(spec.bytes()));
}
BENCHMARK(adam)
    ->ArgNames({"elements", "threads"})
    ->Args({4, 1})
    ->Args({669'706, 1})
    ->Args({669'706, 2})
    ->UseRealTime();

// Forward with a reserve, then backward without the gradient of x, which consumes the reserve, as
// in a training step.
void lstm(benchmark::State& state) {
  const std::int64_t batch = state.range(0), time = state.range(1), in = state.range(2),
                     hidden = state.range(3);
  RecurrentAttributes attributes{.layers = 1, .hidden = static_cast<std::int32_t>(hidden)};
  std::vector<Spec> inputs = {{DType::f32, {batch, time, in}},
                              {DType::f32, {in, 4 * hidden}},
                              {DType::f32, {hidden, 4 * hidden}},
                              {DType::f32, {4 * hidden}}};
  const std::vector<Spec> gradients = inputs;
  const Spec sequence{DType::f32, {batch, time, hidden}}, last{DType::f32, {1, batch, hidden}};
  Call forward(cpu::recurrent, cpu::recurrent_memory, attributes, inputs, {sequence, last, last},
               true);
  attributes.d_given = 1;
  inputs.insert(inputs.begin(), {forward.output(3).spec, sequence});
  inputs.push_back(sequence);
  Call backward(cpu::recurrent_backward, cpu::recurrent_backward_memory, attributes, inputs,
                gradients, false, {kRecurrentBackwardReserve});
  backward.input(0) = forward.output(3);
  backward.input(1) = forward.output(0);
  for (std::size_t i = 0; i < 4; ++i) backward.input(i + 2) = forward.input(i);
  backward.output(0).data = nullptr;
  const bool with_backward = state.range(5) != 0;
  const auto step = [&] {
    forward();
    if (with_backward) backward();
  };
  const std::int64_t forward_products = in + hidden, backward_products = in + 2 * hidden;
  const std::int64_t products = forward_products + (with_backward ? backward_products : 0);
  measure(state, step, state.range(4),
          2.0 * static_cast<double>(batch * time * 4 * hidden * products), 0);
}
BENCHMARK(lstm)
    ->ArgNames({"batch", "time", "in", "hidden", "threads", "backward"})
    ->Args({32, 64, 64, 256, 1, 0})
    ->Args({32, 64, 64, 256, 1, 1})
    ->Args({32, 64, 64, 256, 2, 0})
    ->Args({32, 64, 64, 256, 2, 1})
    ->Args({64, 48, 1, 64, 1, 1})
    ->Args({64, 48, 1, 64, 2, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void empty_job(benchmark::State& state) {
  Workers::instance().set_threads(static_cast<int>(state.range(0)));
  for (auto _ : state)
    Workers::instance().run(4, [](std::int64_t piece) { benchmark::DoNotOptimize(piece); });
}
BENCHMARK(empty_job)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
