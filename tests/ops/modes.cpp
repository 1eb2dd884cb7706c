// Every operator gives the same in eager mode and in a graph.
#include "ebb/core/autodiff/reverse.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/kernels/threads.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {
namespace {

// "" or a description of the first pair of tensors that differ.
std::string difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return "the numbers of results differ";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype() || !(a[i].shape() == b[i].shape()))
      return "result " + std::to_string(i) + " is " + a[i].to_string() + " and " + b[i].to_string();
    if (bytes_of(a[i]) != bytes_of(b[i]))
      return "result " + std::to_string(i) + " has other values";
  }
  return "";
}

// The gradients of the sum of the squares of all results, `order` times.
Tensors gradients_of(const Sample& sample, const Tensors& inputs, int order) {
  Tensors floating;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_floating(inputs[i].dtype()) && !sample.state.has(i)) floating.push_back(inputs[i]);
  Tensors results = sample.call(inputs);
  for (int k = 1; k <= order; ++k)
    results = gradients(sum_of_squares(results), floating, {.create_graph = k < order});
  return results;
}

Tensors as_leaves(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& input : inputs)
    leaves.push_back(is_floating(input.dtype()) ? input.with_grad() : input);
  return leaves;
}

}  // namespace

TEST_CASE(
    "Every operator gives the same in both modes, bit for bit, open or known, for any batch") {
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype))
      for (const std::int64_t batch : batches(dtype, {0, 1, 3})) {
        const Tensors inputs = make_inputs(sample, dtype, batch);
        const Tensors eager = run_eagerly(sample, inputs);
        for (const bool open : {false, true})
          for (const bool passes : {false, true}) {
            if (open != passes && (on_emulated_cuda() || batch != kBatch)) continue;
            INFO(sample.name << ", " << name(dtype) << ", batch of " << batch
                             << (open ? ", open" : "") << (passes ? ", passes" : ""));
            const RecordedSample recorded(sample, dtype, open, batch);
            CHECK(difference(eager, recorded.run(recorded.outputs(), inputs, passes)) == "");
          }
      }
}

TEST_CASE("Every operator and its gradient are the same bits for any number of threads") {
  if (!on_host()) return;  // only the CPU has worker threads
  for (const Sample& sample : all_samples(DType::f32)) {
    INFO(sample.name);
    Tensors first;
    for (const int threads : {1, 3}) {
      const Threads here(threads);
      const Tensors inputs = make_inputs(sample, DType::f32, large_batch(sample));
      Tensors all = run_eagerly(sample, inputs);
      if (sample.order > 0)
        for (const Tensor& gradient : gradients_of(sample, as_leaves(inputs), 1))
          all.push_back(gradient);
      if (threads == 1) first = all;
      CHECK(difference(all, first) == "");
    }
  }
}

TEST_CASE("The gradients of every operator are the same in both modes, bit for bit") {
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype))
      for (int order = 1; order <= sample.order; ++order)
        for (const std::int64_t batch : batches(dtype, {0, 1, 3})) {
          if (on_emulated_cuda() && order > 1 && dtype != DType::f32) continue;
          INFO(sample.name << ", " << name(dtype) << ", order " << order << ", batch of " << batch);
          const RecordedSample recorded(sample, dtype, true, batch);
          const Tensors inputs = make_inputs(sample, dtype, batch);
          const Tensors symbolic = gradients_of(sample, recorded.inputs(), order);
          const Tensors graph = recorded.run(symbolic, inputs);
          Tensors eager = gradients_of(sample, as_leaves(inputs), order);
          eager.resize(symbolic.size());
          Tensors comparable = graph;
          comparable.resize(symbolic.size());  // without the state
          CHECK(difference(eager, comparable) == "");
        }
}

}  // namespace ebb::tests
