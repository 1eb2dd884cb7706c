#pragma once
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

// Where the gradient with respect to a tensor with a history arrives: in a graph, past the updates
// in place of it so far.
Edge edge_of(const Tensor& tensor);

// The nodes that a gradient of this tensor would flow through or end in, itself included.
std::unordered_set<const Node*> nodes_below(const Tensor& tensor);

struct ReverseOptions {
  bool retain_graph = false;
  bool create_graph = false;
  // Targets are the border: nothing below them is looked at.
  bool stop_at_targets = false;
  CallSite site = {};
};

// The one reverse mode, over the nodes of a tape or of a graph: given the gradients of `outputs`,
// those of `targets`; not defined() where no output depends on one. Records of a tape are freed as
// they are passed, unless retained.
Tensors reverse(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                std::span<const Edge> targets, const ReverseOptions& options);

// The same with every leaf of the tape as a target: gradients are added to the leaves' own. When it
// throws, gradients that it made are free again, and those that it had added to are marked: they
// are neither what they were nor complete.
void reverse_into_leaves(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                         const ReverseOptions& options);

// gradients(), for a function of another name, which is then what messages say. Works for the line
// of the call scope it is in.
Tensors gradients_for(const char* what, const Tensor& output, const Tensors& inputs,
                      const BackwardOptions& options = {});

// Whether a leaf's gradient was left incomplete by a backward pass that failed; zero_grad() clears
// it.
bool has_partial_gradient(const Tensor& leaf) noexcept;

}  // namespace ebb::detail
