#pragma once
#include <functional>
#include <span>
#include <unordered_set>

#include "ebb/core/tensor/tensor.h"

namespace ebb {
class Node;
}

namespace ebb::detail {

// One output of a node: what a gradient is taken with respect to.
struct Edge {
  Node* node = nullptr;
  std::uint32_t output = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
};

// A leaf that shares the memory of a floating tensor, whatever is traced.
Tensor make_leaf(const Tensor& concrete);

// The edge at which the gradient with respect to a tensor with a history arrives. In a graph, for a
// tensor that is not state, that is its latest update in place.
Edge edge_of(const Tensor& tensor);

// All nodes that a gradient of this tensor would flow through or end in, its own included.
std::unordered_set<const Node*> nodes_below(const Tensor& tensor);

struct ReverseOptions : BackwardOptions {
  CallSite site = {};
  // Targets are the border: nodes below them are not visited.
  bool stop_at_targets = false;
  // Takes the gradient of a target that leads to no other as soon as it is complete, by the
  // target's index. It is then not among the results.
  std::function<void(std::size_t target, Tensor gradient)> take = {};
};

// Reverse mode, over the nodes of a tape or of a graph. Returns the gradients of `targets`, given
// the gradients of `outputs`; not defined() for a target that no output depends on. Records of a
// tape are freed as they are passed, unless retained.
Tensors reverse(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                std::span<const Edge> targets, const ReverseOptions& options);

// Reverse mode with every leaf of the tape as a target: adds to the leaves' gradients. When it
// throws, gradients that it made are free again, and gradients that it has added to are marked:
// they have neither their old value nor the full sum.
void reverse_into_leaves(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                         const ReverseOptions& options);

// gradients() for a function named `what` in messages. Works for the line of the enclosing call
// scope.
// Gradients go to `take`, if given, as soon as each is complete: one for every input, in any order.
using TakeGradient = std::function<void(std::size_t input, Tensor gradient)>;
Tensors gradients_for(const char* what, const Tensor& output, const Tensors& inputs,
                      const BackwardOptions& options = {}, const TakeGradient& take = {});

// Throws Error for a loss of what has lost its history in a compiled step.
[[noreturn]] void refuse_lost_history(const char* what, CallSite site);

// Whether a backward pass that failed left this leaf's gradient incomplete; zero_grad() clears it.
bool has_partial_gradient(const Tensor& leaf);

}  // namespace ebb::detail
