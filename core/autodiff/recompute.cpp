#include "ebb/core/autodiff/recompute.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

using detail::Edge;
using detail::EdgeCollector;
using detail::refuse;
using detail::TapeMode;
using detail::TapeModeScope;

namespace detail {

void EdgeCollector::note(const OpDef& op, Inputs inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!op.shape_only.has(i)) note(*inputs[i].tensor, !op.stops_gradient.has(i));
}

void EdgeCollector::note(const Tensor& tensor, bool carries_gradient) {
  if (!tensor.defined()) return;
  const TensorImpl& impl = *tensor.impl();
  if (impl.storage) {
    const std::uint64_t serial = impl.storage->serial();
    const bool made_inside = serial > start_ && serial >> 40 == start_ >> 40;
    if (!made_inside && known_captures_.insert(impl.storage.get()).second)
      captures_.emplace_back(impl.storage, impl.offset);
  }
  lost_history_ |= carries_gradient && impl.lost_history;
  if (carries_gradient && impl.node && known_.emplace(impl.node.get(), impl.output).second)
    found_.push_back({impl.node, impl.output, impl.spec});
}

void EdgeCollector::enter(Recorder& graph, CallSite site) {
  if (!found_.empty())
    refuse("recompute", "the function reads tensors with an eager history before those of a graph",
           site);
  graph.begin_recompute();
  graph_ = Ref<Recorder>(&graph);
  tape_mode().records = true;
  tape_mode().collector = nullptr;
}

}  // namespace detail

namespace {

// Runs the function of the record again, this time taped, and differentiates through that tape.
Tensors recompute_gradient(const GradientContext& g) {
  const bool create_graph = detail::tape_mode().records;
  const auto& record = detail::record_of(g.node());
  for (const detail::Kept& capture : record.kept_captures)
    if (!capture.is_current())
      refuse("recompute",
             "the backward pass has to compute again, but a tensor of " +
                 std::to_string(capture.storage()->bytes()) +
                 " bytes that the function reads was at version " +
                 std::to_string(capture.version()) +
                 ", has been updated in place and is at version " +
                 std::to_string(capture.storage()->version()),
             g.site());
  Tensors roots, dys;
  {
    TapeMode mode;
    mode.nan_check = detail::tape_mode().nan_check;
    const TapeModeScope scope(mode);
    const Tensors outputs = record.extra->recompute();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!g.dy(static_cast<int>(i)).defined()) continue;
      // Only the history of a result is needed: its memory is free unless the history keeps it.
      const detail::TensorImpl& impl = *outputs[i].impl();
      Tensor root = detail::shape_only(impl.spec);
      root.impl()->node = impl.node;
      root.impl()->output = impl.output;
      roots.push_back(std::move(root));
      dys.push_back(g.dy(static_cast<int>(i)));
    }
  }
  std::vector<Edge> targets;
  for (const Node::Source& source : g.node().inputs)
    targets.push_back({source.producer.get(), source.output});
  return detail::reverse({roots.data(), roots.size()}, {dys.data(), dys.size()}, targets,
                         {{.create_graph = create_graph}, g.site(), /*stop_at_targets=*/true});
}

const OpDef recompute_op = {
    .name = "recompute", .infer = nullptr, .gradient = recompute_gradient, .stateful = true};

// Another handle to a tensor's memory with the history that it has now.
Tensor same_history(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const detail::TensorImpl& impl = *tensor.impl();
  Tensor other = detail::make_concrete(impl.spec, impl.storage, impl.offset);
  other.impl()->node = impl.node;
  other.impl()->output = impl.output;
  other.impl()->version = impl.version;
  other.impl()->is_detached = impl.is_detached;
  return other;
}

class RegionScope : NoCopy {
 public:
  explicit RegionScope(Recorder& recorder) : recorder_(recorder) { recorder_.begin_recompute(); }
  ~RegionScope() { recorder_.end_recompute(); }

 private:
  Recorder& recorder_;
};

}  // namespace

Tensors recompute(std::function<Tensors(const Tensors&)> function, const Tensors& given,
                  CallSite site) {
  const Tensors inputs = given;  // `function` may drop the caller's handles
  if (!function) refuse("recompute", "the function is empty", site);
  const detail::GeneratorTrial trial;
  const auto symbolic = std::ranges::find_if(inputs, &Tensor::is_symbolic);
  Recorder* const graph =
      symbolic != inputs.end() ? symbolic->impl()->recorder.get() : detail::tape_mode().tracing;
  if (graph) {
    const RegionScope region(*graph);
    return function(inputs);
  }
  if (!detail::tape_mode().records) return function(inputs);

  const detail::Generator at_start = detail::generator();
  EdgeCollector collector;
  Tensors outputs;
  {
    const TapeModeScope scope;
    detail::tape_mode().records = false;
    detail::tape_mode().collector = &collector;
    outputs = function(inputs);
  }
  if (collector.in_graph()) return outputs;
  for (const Tensor& output : outputs) collector.note(output);
  if (collector.found().empty()) return outputs;
  if (collector.lost_history()) detail::refuse_lost_history("recompute", site);

  const auto record = detail::make_ref<detail::TapeRecord>(recompute_op, Attributes(), site);
  for (const EdgeCollector::Found& found : collector.found()) {
    record->inputs.push_back({found.node, found.output, 0});
    record->kept_inputs.emplace_back(found.spec);
  }
  for (detail::Kept& capture : collector.captures())
    record->kept_captures.push_back(std::move(capture));
  // Keeps the inputs with their present history: a later update in place of one would give it a
  // history that holds this record.
  Tensors read;
  for (const Tensor& input : inputs) read.push_back(same_history(input));
  record->make_extra().recompute = [function = std::move(function), read, at_start] {
    const detail::GeneratorScope rewound(at_start);
    return function(read);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    record->kept_outputs.emplace_back();
    Spec& spec = record->outputs.emplace_back();
    if (!outputs[i].defined()) continue;
    // A new handle: the caller still has a tensor that the function passes through.
    outputs[i] = outputs[i].detach();
    spec = outputs[i].impl()->spec;
    if (is_floating(outputs[i].dtype()))
      outputs[i].impl()->tie(record, static_cast<std::uint32_t>(i));
  }
  return outputs;
}

Tensor recompute(std::function<Tensor(const Tensor&)> function, const Tensor& input,
                 CallSite site) {
  if (!function) refuse("recompute", "the function is empty", site);
  return recompute([function = std::move(function)](
                       const Tensors& inputs) -> Tensors { return {function(inputs[0])}; },
                   Tensors{input}, site)[0];
}

}  // namespace ebb
