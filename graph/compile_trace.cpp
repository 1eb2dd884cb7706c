#include "ebb/graph/compile_trace.h"

#include <algorithm>
#include <unordered_map>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

namespace {

// The first argument that is the same leaf.
std::size_t first_of(const Tensors& arguments, std::size_t i) noexcept {
  std::size_t first = 0;
  while (arguments[first].impl()->node != arguments[i].impl()->node) ++first;
  return first;
}

}  // namespace

bool is_leaf(const Tensor& tensor) noexcept {
  const Node* node = tensor.impl()->node.get();
  return node && node->op == &leaf_op;
}

std::string argument_name(std::size_t i, std::size_t count) {
  return "argument " + std::to_string(i + 1) + " of " + std::to_string(count);
}

CallKey::CallKey(CallArguments& arguments, bool records) : others(std::move(arguments.others)) {
  shapes.insert(shapes.end(), {records, looks_for_nan()});
  for (std::size_t i = 0; i < arguments.tensors.size(); ++i) {
    const Tensor& tensor = arguments.tensors[i];
    const Spec& spec = tensor.impl()->spec;
    shapes.insert(shapes.end(), {static_cast<std::int64_t>(spec.dtype), spec.shape.rank()});
    for (const std::int64_t size : spec.shape.dims()) shapes.push_back(size);
    shapes.push_back(is_leaf(tensor) ? static_cast<std::int64_t>(first_of(arguments.tensors, i))
                                     : -1);
  }
  shapes.insert(shapes.end(), arguments.lists.begin(), arguments.lists.end());
}

bool CallKey::operator==(const CallKey& other) const {
  return shapes == other.shapes &&
         std::ranges::equal(others, other.others, [](const auto& a, const auto& b) {
           return a.is_same(a.value, b.value);
         });
}

Tracer::Tracer(const CallKey& key, const Tensors& arguments, const std::optional<Device>& device)
    : arguments_(arguments),
      traced_(std::make_unique<Traced>(Traced{.key = key, .graph = make_ref<GraphState>()})),
      trace_(std::make_unique<Trace>(Ref<Recorder>(traced_->graph), device)) {}

Tracer::~Tracer() {
  if (!trace_) return;  // done
  traced_->graph->forget_draws();
  for (const auto& state : trace_->dependences()) state.take_back();
}

void Tracer::run(const CompiledCalls::Function& function) {
  GraphState& graph = *traced_->graph;
  Tensors symbolic;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const TensorImpl& impl = *arguments_[i].impl();
    symbolic.push_back(graph.placeholder(argument_name(i, arguments_.size()), impl.spec, entry()));
    feed(symbolic.back(), impl.spec.shape);
    if (!is_leaf(arguments_[i])) continue;
    if (const std::size_t first = first_of(arguments_, i); first < i)
      symbolic[i] = symbolic[first];
    else
      trace_->add_leaf(symbolic.back(), impl.node->extra->tensor.defined());
  }
  draws_ = graph.placeholder("draws", {DType::i64, {kOpen, 2}}, entry());
  graph.take_draws_from(draws_);
  TapeMode mode = tape_mode();
  mode.category = memory::Category::temporary;
  mode.tracing = &graph;
  mode.trace = trace_.get();
  const TapeModeScope scope(mode);
  const GeneratorScope draws;
  const std::uint64_t first = generator().counter;
  {
    const CallSiteScope no_line({}, CallSiteScope::innermost);  // operators have their own
    results_ = function(symbolic);
  }
  traced_->draws = generator().counter - first;
  for (const auto& state : trace_->dependences()) state.end_trace();
  symbolic_ = std::move(symbolic);
  find_fetches();
  find_leaves();
  if (traced_->draws > 0) feed(draws_, {static_cast<std::int64_t>(traced_->draws), 2});
}

std::unique_ptr<Traced> Tracer::finish(const CompileOptions& options) {
  const Runtime& runtime = device().runtime();
  std::vector<Node*> effects;
  for (const Ref<Node>& node : traced_->graph->nodes())
    if (node->op->updates.empty() ? node->op->communicates : node->root->op == &captured_op)
      effects.push_back(node.get());
  if (!fetches_.empty() || !effects.empty())
    traced_->program =
        make_program(*traced_->graph, fetches_, fed_, runtime,
                     {.passes = options.passes,
                      .what = kCompile,
                      .details = options.details,
                      .budget = memory::least_bytes({options.budget}, runtime.capacity_bytes()),
                      .batch = options.batch,
                      .effects = effects});
  traced_->graph->forget_draws();
  results_ = symbolic_ = fetches_ = Tensors();
  draws_ = Tensor();
  fed_.clear();
  require_none_left();
  traced_->dependences = std::move(trace_->dependences());
  trace_ = nullptr;
  return std::move(traced_);
}

bool Tracer::has_history(const Tensor& result) {
  if (!is_floating(result.dtype()) || !result.impl()->node->has_history) return false;
  return std::ranges::any_of(nodes_below(result),
                             [&](const Node* node) { return trace_->leaf_behind(*node); });
}

void Tracer::find_fetches() {
  for (const Tensor& result : results_) {
    if (!result.defined()) {
      traced_->results.push_back({});
      continue;
    }
    const Tensor symbolic = trace_->symbolic(result, kCompile, entry());
    if (!traced_->graph->owns(symbolic))
      refuse(kCompile, "the function returns " + result.to_string() + " of another graph");
    traced_->results.push_back({fetch(symbolic), has_history(symbolic)});
  }
}

void Tracer::find_leaves() {
  for (Trace::Leaf& leaf : trace_->leaves()) {
    TracedLeaf traced{
        .is_read = leaf.is_read, .has_gradient = leaf.has_gradient, .is_changed = leaf.is_changed};
    if (!leaf.tensor.is_symbolic()) {
      traced.tensor = leaf.tensor;
    } else {
      const auto at = std::ranges::find_if(
          symbolic_, [&](const Tensor& argument) { return argument.impl() == leaf.tensor.impl(); });
      if (at == symbolic_.end()) continue;  // made inside: nobody sees its gradient afterwards
      traced.argument = static_cast<std::size_t>(at - symbolic_.begin());
    }
    if (leaf.before.defined()) {
      traced.feed = fed_.size();
      feed(leaf.before, leaf.before.shape());
    }
    if (leaf.is_changed && leaf.gradient.defined())
      traced.gradient = {fetch(leaf.gradient), has_history(leaf.gradient)};
    traced_->leaves.push_back(std::move(traced));
  }
  trace_->leaves().clear();
}

void Tracer::require_none_left() const {
  std::unordered_map<const Node*, std::uint32_t> known;
  for (const Ref<Node>& node : traced_->graph->nodes()) {
    ++known[node.get()];
    for (const Node::Source& source : node->inputs) ++known[source.producer.get()];
  }
  if (traced_->program)
    for (const Ref<Node>& node : traced_->program->made)
      for (const Node::Source& source : node->inputs) ++known[source.producer.get()];
  for (const Ref<Node>& node : traced_->graph->nodes())
    if (node->references() > known[node.get()])
      refuse(node->op->name,
             "a tensor made by a compiled step is still held outside of it, where it has no value: "
             "return it from the function; to change a tensor of the program, assign() to it",
             node->site);
}

bool is_traced() noexcept { return tape_mode().trace != nullptr; }

}  // namespace ebb::detail
