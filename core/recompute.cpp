#include "ebb/core/recompute.h"

#include <algorithm>

#include "ebb/core/error.h"
#include "ebb/core/gradient_context.h"
#include "ebb/core/random.h"
#include "ebb/core/tape_mode.h"
#include "ebb/core/tensor_impl.h"

namespace ebb {

using detail::Edge;
using detail::EdgeCollector;
using detail::TapeMode;
using detail::TapeModeScope;

namespace detail {

void EdgeCollector::note(const OpDef& op, Inputs inputs) {
  if (op.updates) return;
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    if (!impl.node) continue;
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Found& found) {
      return found.node == impl.node && found.output == impl.output;
    });
    if (!known) found_.push_back({impl.node, impl.output, impl.spec});
  }
}

}  // namespace detail

namespace {

// Runs the function of the record again, this time taped, and goes through that tape.
Tensors recompute_gradient(const GradientContext& g) {
  const bool create_graph = detail::tape_mode().records;
  Tensors outputs;
  {
    TapeMode mode;
    const TapeModeScope scope(mode);
    outputs = g.node().extra->recompute();
  }
  Tensors roots, dys;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!g.dy(static_cast<int>(i)).defined()) continue;
    roots.push_back(outputs[i]);
    dys.push_back(g.dy(static_cast<int>(i)));
  }
  outputs.clear();
  std::vector<Edge> targets;
  for (const Node::Source& source : g.node().inputs)
    targets.push_back({source.producer.get(), source.output});
  return detail::reverse({roots.data(), roots.size()}, {dys.data(), dys.size()}, targets,
                         {.create_graph = create_graph, .stop_at_targets = true, .site = g.site()});
}

const OpDef recompute_op = {
    .name = "recompute", .infer = nullptr, .gradient = recompute_gradient, .stateful = true};

// Draws as from `state` for a scope.
class GeneratorScope {
 public:
  explicit GeneratorScope(detail::Generator state) noexcept
      : previous_(std::exchange(detail::generator(), state)) {}
  ~GeneratorScope() { detail::generator() = previous_; }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  const detail::Generator previous_;
};

class RegionScope {
 public:
  explicit RegionScope(Recorder& recorder) : recorder_(recorder) { recorder_.begin_recompute(); }
  ~RegionScope() { recorder_.end_recompute(); }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;

 private:
  Recorder& recorder_;
};

}  // namespace

Tensors recompute(std::function<Tensors(const Tensors&)> function, const Tensors& inputs,
                  const char* file, unsigned line) {
  for (const Tensor& input : inputs) {
    if (!input.is_symbolic()) continue;
    const detail::Ref<Recorder> recorder = input.impl()->recorder;
    const RegionScope region(*recorder);
    return function(inputs);
  }
  if (!detail::tape_mode().records) return function(inputs);

  const detail::Generator at_start = detail::generator();
  EdgeCollector collector;
  Tensors outputs;
  {
    TapeMode mode = detail::tape_mode();
    mode.records = false;
    mode.collector = &collector;
    const TapeModeScope scope(mode);
    outputs = function(inputs);
  }
  if (collector.found().empty()) return outputs;

  auto node = detail::make_ref<Node>(recompute_op, Attributes(), CallSite{file, line});
  for (const EdgeCollector::Found& found : collector.found()) {
    Node::Source& source = node->inputs.emplace_back();
    source.producer = found.node;
    source.output = found.output;
    source.spec = found.spec;
  }
  node->extra = std::make_unique<Node::Extra>();
  node->extra->recompute = [function = std::move(function), inputs, at_start] {
    const GeneratorScope rewound(at_start);
    return function(inputs);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // A result that is an outer tensor handed through keeps its own history.
    if (outputs[i].impl()->node) outputs[i] = outputs[i].detach();
    outputs[i].impl()->node = node;
    outputs[i].impl()->output = static_cast<std::uint32_t>(i);
    node->outputs.emplace_back().spec = outputs[i].impl()->spec;
  }
  return outputs;
}

Tensor recompute(std::function<Tensor(const Tensor&)> function, const Tensor& input,
                 const char* file, unsigned line) {
  return recompute([function = std::move(function)](
                       const Tensors& inputs) -> Tensors { return {function(inputs[0])}; },
                   Tensors{input}, file, line)[0];
}

}  // namespace ebb
