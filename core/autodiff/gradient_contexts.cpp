#include "ebb/core/autodiff/gradient_contexts.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

Tensor RegionClones::original(const Node::Source& source) const {
  Tensor tensor = make_symbolic(source.producer->outputs[source.output], recorder_, source.producer,
                                source.output);
  tensor.impl()->version = source.version;
  return tensor;
}

namespace {
// Draws and other effects happen once and are not cloned. Values from outside the region can be
// read as they are.
bool is_cloned(const Node::Source& source, std::uint32_t region) {
  const Root root = root_of(source);
  return region != 0 && root.node->region == region && !root.node->op->stateful && !is_state(root);
}
}  // namespace

Tensor RegionClones::read(const Node::Source& source) {
  const Root root = root_of(source);
  if (!is_cloned(source, root.node->region)) return original(source);
  clone(source);
  const TensorImpl& cloned = *clones_.at(source.producer.get())[source.output].impl();
  // This read must not see later updates of the clone.
  Tensor pinned = make_symbolic(cloned.spec, recorder_, cloned.node, cloned.output);
  pinned.impl()->version = source.version;
  return pinned;
}

// Clones in the order of the program, so that versions of the clone are numbered like the
// original's.
void RegionClones::clone(const Node::Source& wanted) {
  const std::uint32_t region = root_of(wanted).node->region;
  std::vector<Node*> missing;
  std::unordered_set<const Node*> seen;
  const auto want = [&](Node* node) {
    if (node && !clones_.contains(node) && seen.insert(node).second) missing.push_back(node);
  };
  const auto want_source = [&](const Node::Source& source) {
    if (!is_cloned(source, region)) return;
    want(source.producer.get());
    want(needed_update(root_of(source), source.version));
  };
  want_source(wanted);
  for (std::size_t next = 0; next < missing.size(); ++next)
    for (const Node::Source& source : Ref<Node>(missing[next])->inputs) want_source(source);
  std::ranges::sort(missing, [](const Node* a, const Node* b) { return a->number < b->number; });
  for (Node* node : missing) {
    Tensors inputs;
    for (const Node::Source& source : node->inputs)
      inputs.push_back(is_cloned(source, region) ? read(source) : original(source));
    const InlineVector<Input, 4> arguments(inputs.begin(), inputs.end());
    clones_.emplace(node, recorder_->record(*node->op, arguments, node->attributes, node->site));
  }
}

Tensor TapeGradient::rebuild(const Spec& spec, const Kept& kept, const Ref<Node>& producer,
                             std::uint32_t output, const char* which) const {
  if (!kept) return shape_only(spec);
  if (!kept.is_current())
    refuse(node_.op->name,
           std::string("the backward pass needs ") + which + ", a " + spec.to_string() +
               ", at version " + std::to_string(kept.version()) +
               ", but it has been updated in place and is at version " +
               std::to_string(kept.storage()->version()),
           node_.site);
  Tensor tensor = make_concrete(spec, kept.storage(), kept.offset());
  tensor.impl()->tie(producer, output);
  tensor.impl()->is_detached = !producer;
  return tensor;
}

Tensor TapeGradient::x(int i) const {
  const Node::Source& source = node_.inputs[static_cast<std::size_t>(i)];
  const TapeRecord::Input& input = record_.kept_inputs[static_cast<std::size_t>(i)];
  return rebuild(input.spec, input.kept, source.producer, source.output, "an input");
}

Tensor TapeGradient::y(int i) const {
  const auto output = static_cast<std::size_t>(i);
  return rebuild(record_.outputs[output], record_.kept_outputs[output], Ref<Node>(&record_),
                 static_cast<std::uint32_t>(i), "its result");
}

// Memory that somebody else holds too stays with the record: no operator could use it up.
bool TapeGradient::is_last(const Kept& kept) const noexcept {
  return frees_ && kept && kept.storage()->unique();
}

Tensor TapeGradient::take(Tensor tensor, Kept& kept) const noexcept {
  kept.leave();
  record_.released = true;  // also if this pass fails: nobody can go through the record again
  return tensor;
}

Tensor TapeGradient::take_x(int i) const {
  Kept& kept = record_.kept_inputs[static_cast<std::size_t>(i)].kept;
  return is_last(kept) ? take(x(i), kept) : x(i);
}

Tensor TapeGradient::take_y(int i) const {
  Kept& kept = record_.kept_outputs[static_cast<std::size_t>(i)];
  return is_last(kept) ? take(y(i), kept) : y(i);
}

Tensor GraphGradient::x(int i) const {
  const auto input = static_cast<std::size_t>(i);
  const Node::Source& source = node_.inputs[input];
  if (node_.region != 0 && keeps_input(*node_.op, input, wants_) &&
      root_of(source).node->region == node_.region)
    return clones_.read(source);
  return clones_.original(source);
}

Tensor GraphGradient::y(int i) const {
  Node& self = const_cast<Node&>(node_);
  const auto output = static_cast<std::uint32_t>(i);
  const Node::Source source{Ref<Node>(&self), output, version_made(self, output)};
  return keeps_output(*node_.op, output, wants_) ? clones_.read(source) : clones_.original(source);
}

}  // namespace ebb::detail
