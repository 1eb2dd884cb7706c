#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/category.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb {

class Node;
namespace detail {
// Ends a node's life without recursion, however long the chain below it.
void destroy(Node* node) noexcept;
}  // namespace detail

// An application of an operator: a node of a graph, or (as a detail::TapeRecord) a record of the
// eager tape. A node refers to the nodes that made its inputs, never to tensors: there are no
// cycles, and a node holds no memory by itself.
class Node : public detail::Counted {
 public:
  struct Source {
    detail::Ref<Node> producer;  // null on the tape: a constant as far as gradients go
    std::uint32_t output = 0;    // output number of the producer
    // In a graph, the version read of the memory behind it (lineage.h). 0 on the tape, where memory
    // is read at once.
    std::uint32_t version = 0;
  };
  // Members that few nodes need.
  struct Extra {
    std::string name;          // of a placeholder or variable
    Tensor tensor;             // a leaf's gradient; a graph's captured tensor
    bool partial = false;      // a backward pass failed after it had added to this leaf's gradient
    bool unreachable = false;  // no handle is left that could read this leaf's gradient
    // Device of a leaf or, for a moving operator on the tape, of its input.
    std::optional<Device> device;
    std::function<Tensors()> recompute;
    // In a graph, by output: the nodes that update its memory in place. The k-th, from 0, makes
    // version k + 1.
    std::vector<std::vector<Node*>> updates;
  };

  Node(const OpDef& what, const Attributes& how, CallSite where, std::uint64_t which) noexcept
      : op(&what), attributes(how), site(where), number(which) {}
  virtual ~Node() = default;

  Extra& make_extra() {
    if (!extra) extra = std::make_unique<Extra>();
    return *extra;
  }

  const OpDef* op;
  Attributes attributes;
  CallSite site;
  // Inputs have smaller numbers than their readers. In a graph: the position in it.
  const std::uint64_t number;
  InlineVector<Source, 3> inputs;
  InlineVector<Spec, 1> outputs;
  std::unique_ptr<Extra> extra;
  // In a graph, for views and updates. `root` owns the memory of output 0. `target` is the tensor
  // that an update's result is, also through further updates of the same target.
  Node* root = nullptr;
  Node* target = nullptr;
  std::uint32_t root_output = 0, target_output = 0;
  std::uint32_t region = 0;  // a graph's recompute region this node belongs to; 0: none
  memory::Category category = memory::Category::temporary;  // gradient if made by reverse mode
  bool released = false;  // a backward pass has freed this record of the tape
  bool has_history =
      true;  // false in a graph: made under NoGrad, or by a pass that is not recorded
};

// The tape's operator of leaves: no inputs, one output, a gradient accumulates in extra->tensor.
extern const OpDef leaf_op;

}  // namespace ebb
