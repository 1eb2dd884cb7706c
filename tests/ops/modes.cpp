// Every operator gives the same in eager mode and in a graph.
#include <cmath>
#include <set>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/rows.h"
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

// Applies the nodes of a draft eagerly, one by one. Returns its fetches.
Tensors apply_nodes(const detail::Draft& draft, const Tensors& feeds) {
  std::vector<Tensor> values(draft.specs.size());
  for (const detail::DraftNode& item : draft.nodes) {
    const Node& node = *item.node;
    if (item.feed != detail::kNone) values[item.first_output] = feeds[item.feed];
    if (!item.runs || node.op->is_source) continue;
    Tensors read;
    for (const Node::Source& source : node.inputs) {
      const detail::Index output = draft.output_of(source);
      const Spec& spec = draft.specs[output];
      read.push_back(values[output].defined() ? values[output] : zeros(spec.shape, spec.dtype));
    }
    // Outputs for the gradient are made if a gradient is wanted.
    if (!node.op->gradient_outputs.empty()) read = as_leaves(read);
    const Shape& shape = draft.specs[item.first_output].shape;
    Tensors made;
    if (node.op->view && node.op != &slice_op)  // its attributes may have the shape of all rows
      made = {reshape(read[0], shape)};
    else if (node.op == &broadcast_to_op)
      made = {broadcast_to(read[0], shape)};
    else if (read.empty())
      made = apply_on(Device::cpu(), *node.op, node.attributes, {});
    else
      made = apply(*node.op, std::vector<Input>(read.begin(), read.end()), node.attributes, {});
    for (std::size_t k = 0; k < made.size(); ++k)
      values[item.first_output + k] = made[k].defined() ? made[k].detach() : Tensor();
  }
  Tensors fetched;
  for (const detail::DraftFetch& fetch : draft.fetches)
    fetched.push_back(values[draft.output_of(fetch.source)]);
  return fetched;
}

bool near(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = cast(a[i], DType::f64).to_vector<double>(),
                              y = cast(b[i], DType::f64).to_vector<double>();
    if (!(a[i].shape() == b[i].shape())) return false;
    for (std::size_t j = 0; j < x.size(); ++j)
      if (!(std::abs(x[j] - y[j]) <= 1e-9 * (1 + std::abs(x[j]))) && x[j] != y[j]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("Every operator and its gradient are the same in micro-batches, or refused") {
  if (!on_host()) return;  // devices do not matter
  constexpr std::int64_t kRows = 5;
  std::set<std::string> open, cut;
  for (const Sample& sample : all_samples(DType::f64))
    for (const int order : {0, 1}) {
      if (order > sample.order || !sample.state.empty()) continue;
      INFO(sample.name << ", order " << order);
      const RecordedSample recorded(sample, DType::f64, true, kRows);
      const Tensors inputs = make_inputs(sample, DType::f64, kRows);
      const Tensors fetches =
          order == 0 ? recorded.outputs() : gradients_of(sample, recorded.inputs(), order);
      FedShapes shapes;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        shapes.push_back({recorded.inputs()[i], inputs[i].shape()});
      detail::Draft draft =
          detail::prune(recorded.graph().state(), Device::cpu().runtime(), fetches);
      detail::infer(draft, shapes);
      const detail::Rows rows = detail::find_rows(draft);
      if (rows.count < 2) continue;
      open.insert(sample.op->name);
      if (!rows.can_cut()) continue;
      const Tensors whole = apply_nodes(draft, inputs);
      for (std::size_t n = 0; n < draft.nodes.size(); ++n)
        if (rows.items[n].is_cut) cut.insert(draft.nodes[n].node->op->name);
      for (const std::int64_t parts : {2, 3, 5})
        CHECK(near(whole, apply_nodes(detail::cut(draft, rows, parts), inputs)));
    }
  for (const std::string& name : cut) open.erase(name);
  const std::set<std::string>
      refused = {"all_gather",          "all_reduce", "broadcast", "broadcast_backward",
                 "reduce_scatter",      "recv",       "send",      "assign_slice",
                 "batch_norm_backward", "bernoulli",  "normal",    "uniform"},
      of_shapes = {"bytes_in_use",     "bytes_limit", "causal_bias",
                   "max_bytes_in_use", "rows_in_use", "size"};
  for (const std::string& name : refused) CHECK(open.erase(name) == 1);
  CHECK(open == of_shapes);
}

TEST_CASE("Every operator with rows along any axis of its inputs is cut to the same, or refused") {
  if (!on_host()) return;  // devices do not matter
  constexpr std::int64_t kRows = 4;
  std::size_t cuts = 0;
  for (const Sample& sample : all_samples(DType::f64)) {
    if (!sample.state.empty()) continue;
    const Tensors values = make_inputs(sample, DType::f64, kRows);
    // Rows of one input; or, first, of all inputs that are as long along the axis.
    for (std::size_t which = 0; which <= values.size(); ++which)
      for (int axis = 0; axis < 4; ++axis)
        for (int order = 0; order <= std::min(sample.order, 1); ++order) {
          INFO(sample.name << ", axis " << axis << " of " << which << ", order " << order);
          Graph graph;
          Tensors feeds, inputs;
          FedShapes shapes;
          std::vector<std::size_t> batch;  // inputs that have rows
          std::int64_t rows = 0;
          for (std::size_t i = 0; i < values.size(); ++i) {
            const Tensor& value = values[i];
            const bool has_rows = axis < value.rank() && (which == 0 || which == i + 1) &&
                                  (rows == 0 || value.shape()[axis] == rows);
            if (has_rows) rows = value.shape()[axis];
            const Tensor fed = has_rows ? transpose(value, 0, axis) : value;
            const Tensor input = graph.placeholder(std::to_string(i), fed.dtype(), fed.shape());
            if (has_rows) batch.push_back(i);
            shapes.push_back({input, fed.shape()});
            feeds.push_back(fed.clone());
            inputs.push_back(has_rows ? transpose(input, 0, axis) : input);
          }
          if (rows < 2) continue;
          Tensors results;  // no element has the weight of another
          for (const Tensor& result : gradients_of(sample, inputs, order)) {
            const Tensor weights =
                reshape(arange(static_cast<double>(result.elements()), {.dtype = DType::f64}),
                        result.shape());
            const Tensor fed =
                graph.placeholder("w" + std::to_string(feeds.size()), DType::f64, result.shape());
            shapes.push_back({fed, result.shape()});
            feeds.push_back(weights);
            results.push_back(cast(result, DType::f64) * fed);
          }
          detail::Draft draft =
              detail::prune(graph.state(), Device::cpu().runtime(), {sum_of_squares(results)});
          detail::infer(draft, shapes);
          const detail::Rows found = detail::find_rows(draft, batch);
          if (!found.can_cut()) continue;
          ++cuts;
          CHECK(near(apply_nodes(draft, feeds),
                     apply_nodes(detail::cut(draft, found, rows > 2 ? 3 : 2), feeds)));
        }
  }
  CHECK(cuts > 1000);
}

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
