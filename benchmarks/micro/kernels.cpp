// The CPU kernels through their operators, eagerly: products, pointwise, a whole LSTM, Adam. The
// last argument of each is the number of threads. GFLOP/s and GB/s are counters; bytes are the
// least that must move. A call costs some 0.1 us beside its kernel (dispatch.cpp).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "ebb/core/kernels/workers.h"
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/eager/no_grad.h"
#include "ebb/optim/adam.h"

namespace {

using namespace ebb;

Tensor small_numbers(const Shape& shape, DType dtype = DType::f32) {
  return uniform(shape, {.low = -0.1, .high = 0.1, .dtype = dtype});
}

template <class Call>
void measure(benchmark::State& state, std::int64_t threads, double operations, double bytes,
             const Call& call) {
  flush_denormals_on_this_thread();
  Workers::instance().set_threads(static_cast<int>(threads));
  call();
  for (auto _ : state) call();
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (operations > 0) state.counters["FLOP/s"] = benchmark::Counter(operations, rate);
  if (bytes > 0) state.counters["bytes/s"] = benchmark::Counter(bytes, rate);
}

void products(benchmark::State& state) {
  const std::int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool ta = state.range(3) == 1, tb = state.range(3) == 2;
  const Tensor a = small_numbers(ta ? Shape{k, m} : Shape{m, k}),
               b = small_numbers(tb ? Shape{n, k} : Shape{k, n});
  measure(state, state.range(4), 2.0 * static_cast<double>(m * k * n), 0,
          [&] { matmul(a, b, {.transpose_a = ta, .transpose_b = tb}); });
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
BENCHMARK(products)->Apply(product_arguments)->UseRealTime();

// An operator on arrays of equal size, of which it moves `arrays`.
template <class Apply>
void pointwise(benchmark::State& state, DType dtype, int arrays, const Apply& apply) {
  const Tensor a = small_numbers({state.range(0)}, dtype),
               b = small_numbers({state.range(0)}, dtype);
  measure(state, state.range(1), 0, arrays * static_cast<double>(a.bytes()), [&] { apply(a, b); });
}
void pointwise_arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"elements", "threads"})
      ->Args({4, 1})
      ->Args({65'536, 1})
      ->Args({1 << 20, 1})
      ->Args({1 << 20, 2});
}
#define EBB_POINTWISE(name, dtype, arrays, result)         \
  BENCHMARK_CAPTURE(pointwise, name, dtype, arrays,        \
                    [](const Tensor& a, const Tensor& b) { \
                      static_cast<void>(b);                \
                      return result;                       \
                    })                                     \
      ->Apply(pointwise_arguments)                         \
      ->UseRealTime();
EBB_POINTWISE(tanh, DType::f32, 2, tanh(a))
EBB_POINTWISE(sigmoid, DType::f32, 2, sigmoid(a))
EBB_POINTWISE(exp, DType::f32, 2, exp(a))
EBB_POINTWISE(log, DType::f32, 2, log(a))
EBB_POINTWISE(tanh_f64, DType::f64, 2, tanh(a))
EBB_POINTWISE(sigmoid_f64, DType::f64, 2, sigmoid(a))
EBB_POINTWISE(exp_f64, DType::f64, 2, exp(a))
EBB_POINTWISE(log_f64, DType::f64, 2, log(a))
EBB_POINTWISE(relu, DType::f32, 2, relu(a))
EBB_POINTWISE(add, DType::f32, 3, a + b)
EBB_POINTWISE(relu_gradient, DType::f32, 3,
              apply_one(relu_gradient_op, {a, b}, {}, CallSite::here()))
EBB_POINTWISE(dropout, DType::f32, 2, dropout(a, 0.1, Phase::training))
EBB_POINTWISE(normal, DType::f32, 1, normal_like(a))
EBB_POINTWISE(normal_f64, DType::f64, 1, normal_like(a))
#undef EBB_POINTWISE

void sums(benchmark::State& state) {
  const Tensor x = small_numbers({state.range(0), state.range(1)});
  const ReduceOptions over[] = {{}, {.axis = 0}, {.axis = 1}, {}};
  measure(state, state.range(3), 0, static_cast<double>(x.bytes()),
          [&] { sum(x, over[state.range(2)]); });
}
BENCHMARK(sums)
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

void softmaxes(benchmark::State& state) {
  const Tensor x = small_numbers({state.range(0), state.range(1)});
  measure(state, 1, 0, 2.0 * static_cast<double>(x.bytes()), [&] { softmax(x); });
}
BENCHMARK(softmaxes)
    ->ArgNames({"rows", "classes"})
    ->Args({128, 10})
    ->Args({128, 1000})
    ->UseRealTime();

void losses(benchmark::State& state) {
  const Tensor scores = small_numbers({state.range(0), state.range(1)});
  const Tensor labels = Tensor::zeros({state.range(0)}, DType::i32);
  measure(state, 1, 0, 0, [&] { softmax_cross_entropy(scores, labels); });
}
BENCHMARK(losses)->ArgNames({"rows", "classes"})->Args({128, 10})->Args({128, 1000})->UseRealTime();

void adam(benchmark::State& state) {
  const Parameters parameters(Device::cpu());
  const Tensor p = parameters.declare("p", {state.range(0)}, initializers::ones());
  const Tensors gradients = {small_numbers({state.range(0)})};
  const optim::Adam adam;
  measure(state, state.range(1), 0, 7.0 * static_cast<double>(p.bytes()),
          [&] { adam.apply(gradients, parameters); });
}
BENCHMARK(adam)
    ->ArgNames({"elements", "threads"})
    ->Args({4, 1})
    ->Args({669'706, 1})
    ->Args({669'706, 2})
    ->UseRealTime();

// Forward, or a training step without the gradient of x.
void lstms(benchmark::State& state) {
  const std::int64_t batch = state.range(0), time = state.range(1), in = state.range(2),
                     hidden = state.range(3);
  const bool backward = state.range(5) != 0;
  const Tensor x = small_numbers({batch, time, in});
  const LstmWeights weights{small_numbers({in, 4 * hidden}).with_grad(),
                            small_numbers({hidden, 4 * hidden}).with_grad(),
                            small_numbers({4 * hidden}).with_grad()};
  const double forward_operations =
      2.0 * static_cast<double>(batch * time * 4 * hidden * (in + hidden));
  const double backward_operations =
      2.0 * static_cast<double>(batch * time * 4 * hidden * (in + 2 * hidden));
  measure(state, state.range(4), forward_operations + (backward ? backward_operations : 0), 0, [&] {
    if (backward) return sum(lstm(x, {weights}).sequence).backward();
    const NoGrad no_grad;
    lstm(x, {weights});
  });
}
BENCHMARK(lstms)
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
