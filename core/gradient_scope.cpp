#include "ebb/core/gradient_scope.h"

#include "ebb/core/error.h"
#include "ebb/core/tensor_impl.h"

namespace ebb::detail {

Tensor RegionClones::original(const Ref<Node>& node, std::uint32_t output) const {
  return make_symbolic(node->outputs[output].spec, recorder_, node, output);
}

Tensor RegionClones::read(const Ref<Node>& node, std::uint32_t output) {
  if (node->region == 0 || node->op->stateful) return original(node, output);
  auto found = clones_.find(node.get());
  if (found == clones_.end()) {
    Tensors inputs;
    for (const Node::Source& source : node->inputs)
      inputs.push_back(source.producer->region == node->region
                           ? read(source.producer, source.output)
                           : original(source.producer, source.output));
    InlineVector<Input, 4> arguments;
    for (const Tensor& input : inputs) arguments.push_back(Input(input));
    found =
        clones_
            .emplace(node.get(), recorder_->record(*node->op, {arguments.data(), arguments.size()},
                                                   node->attributes, node->site))
            .first;
  }
  return found->second[output];
}

Tensor TapeGradient::rebuild(const Spec& spec, const Kept& kept, const Ref<Node>& producer,
                             std::uint32_t output, const char* which) const {
  if (!kept) return shape_only(spec);
  if (!kept.is_current())
    throw Error(message(node_.op->name,
                        std::string("the backward pass needs ") + which + ", a " +
                            spec.to_string() + ", at version " + std::to_string(kept.version()) +
                            ", but it has been updated in place and is at version " +
                            std::to_string(kept.storage()->version()),
                        node_.site));
  Tensor tensor = make_concrete(spec, kept.storage(), kept.offset());
  tensor.impl()->node = producer;
  tensor.impl()->output = output;
  return tensor;
}

Tensor TapeGradient::x(int i) const {
  const Node::Source& source = node_.inputs[static_cast<std::size_t>(i)];
  return rebuild(source.spec, source.kept, source.producer, source.output, "an input");
}

Tensor TapeGradient::y(int i) const {
  const Node::Result& result = node_.outputs[static_cast<std::size_t>(i)];
  return rebuild(result.spec, result.kept, Ref<Node>(const_cast<Node*>(&node_)),
                 static_cast<std::uint32_t>(i), "its result");
}

// Memory that somebody else holds as well stays with the record: no operator could use it up.
bool TapeGradient::is_last(const Kept& kept) const noexcept {
  return frees_ && kept && kept.storage()->unique();
}

Tensor TapeGradient::take(Tensor tensor, Kept& kept) const noexcept {
  kept.leave();
  record_.released = true;  // also where this pass fails: nobody can go through the record again
  return tensor;
}

Tensor TapeGradient::take_x(int i) const {
  Kept& kept = record_.inputs[static_cast<std::size_t>(i)].kept;
  return is_last(kept) ? take(x(i), kept) : x(i);
}

Tensor TapeGradient::take_y(int i) const {
  Kept& kept = record_.outputs[static_cast<std::size_t>(i)].kept;
  return is_last(kept) ? take(y(i), kept) : y(i);
}

Tensor GraphGradient::x(int i) const {
  const Node::Source& source = node_.inputs[static_cast<std::size_t>(i)];
  if (node_.region == source.producer->region && node_.region != 0 &&
      (keeps_of(*node_.op, wants_).inputs & bit(i)))
    return clones_.read(source.producer, source.output);
  return make_symbolic(source.spec, clones_.recorder(), source.producer, source.output);
}

Tensor GraphGradient::y(int i) const {
  const Ref<Node> self(const_cast<Node*>(&node_));
  const auto output = static_cast<std::uint32_t>(i);
  if (keeps_of(*node_.op, wants_).outputs & bit(i)) return clones_.read(self, output);
  return make_symbolic(node_.outputs[output].spec, clones_.recorder(), self, output);
}

}  // namespace ebb::detail
