#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// A call of a function that compile() traces: all of its operators record into `graph`. Knows the
// device, and what the function does to the program beside computing: gradients of leaves, draws,
// slots.
class Trace {
 public:
  // `device` may still be unknown: the first tensor that is captured or made tells it.
  Trace(Ref<Recorder> graph, std::optional<Device> device)
      : graph_(std::move(graph)), device_(std::move(device)) {}

  Recorder& graph() const noexcept { return *graph_; }
  // Throws Error while it is unknown.
  const Device& device(const char* what, CallSite site) const;
  const std::optional<Device>& known_device() const noexcept { return device_; }
  // Throws Error for another device than the trace's.
  void require_device(const Device& device, const char* what, CallSite site);
  // The tensor as one of the graph's: a concrete one is captured.
  Tensor symbolic(const Tensor& tensor, const char* what, CallSite site) const {
    return tensor.is_symbolic() ? tensor : graph_->capture(tensor, what, site);
  }

  // A leaf whose gradient the function reads or changes.
  struct Leaf {
    Tensor tensor;              // concrete, or symbolic: made by the function, or an argument
    bool has_gradient = false;  // whether it had one before the call
    Tensor gradient = {};       // at this point of the function, symbolic
    Tensor before = {};         // placeholder of the gradient that it had before the call
    bool is_read = false;       // the function depends on has_gradient
    bool is_changed = false;    // the gradient is not the one that it had before the call
  };
  // Makes a symbolic tensor a leaf.
  void add_leaf(const Tensor& tensor, bool has_gradient);
  // Null: the tensor is no leaf.
  Leaf* find_leaf(const Tensor& tensor);
  // The leaf that a node of the graph stands for; null: it stands for none.
  Leaf* leaf_behind(const Node& node);
  // The leaf's gradient now, not defined() if it has none. An undefined tensor for what is no leaf.
  const Tensor& gradient(const Tensor& tensor);
  void set_gradient(const Tensor& tensor, Tensor gradient);
  // In the order in which the function first used them.
  std::deque<Leaf>& leaves() noexcept { return leaves_; }

  // State of the program, beside values, that the function reads when it is traced.
  struct Dependence {
    const void* of;  // tells one state from another
    // Called when the function has been traced: its own changes are part of what it depends on.
    std::function<void()> end_trace;
    std::function<bool()> holds;      // whether the state is as the trace has read and left it
    std::function<void()> take_back;  // undoes the function's own changes
  };
  using Dependences = std::vector<Dependence>;
  bool depends_on(const void* state) const noexcept;
  void depend(Dependence dependence) { dependences_.push_back(std::move(dependence)); }
  Dependences& dependences() noexcept { return dependences_; }

 private:
  const Ref<Recorder> graph_;
  std::optional<Device> device_;
  std::deque<Leaf> leaves_;                         // references to elements stay valid
  std::unordered_map<const Node*, Leaf*> leaf_of_;  // by the node of the graph or of the tape
  Dependences dependences_;
  std::size_t fed_ = 0;  // number of gradients that are fed
};

// Refuses what would use a value while compile() traces this thread.
void refuse_while_tracing(const char* what, CallSite site);

}  // namespace ebb::detail
