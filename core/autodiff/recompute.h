#pragma once
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tape_record.h"

namespace ebb {

// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016), in
// both modes: computes function(inputs) without keeping anything inside it for the gradient, and
// computes it again when the gradient needs it, drawing the same random numbers. Gradients equal a
// plain call's, up to the order in which gradients of several readers are summed.
//
// Eager: `function` and whatever it captures by reference must live until the backward pass. That
// pass throws Error if a tensor that `function` reads has been updated in place since, also by
// `function` itself. A function that takes gradients is refused. Graph: updates of state are made
// once, and both are allowed.
//
// backward({.create_graph = true}) gives a leaf a gradient with a history, which may hold
// `function`. If `function` has captured the leaf, or a model of it, by value, that is a cycle:
// capture by reference, or call zero_grad() before the last handle goes.
Tensors recompute(std::function<Tensors(const Tensors&)> function, const Tensors& inputs,
                  CallSite site = CallSite::here());
// Overload for one tensor in and one out.
Tensor recompute(std::function<Tensor(const Tensor&)> function, const Tensor& input,
                 CallSite site = CallSite::here());

namespace detail {
// Collects the inputs of a function that it did not make itself: tensors with a history (arguments
// and captured parameters), and memory that must be unchanged when it runs again.
class EdgeCollector : NoCopy {
 public:
  struct Found {
    Ref<Node> node;
    std::uint32_t output;
    Spec spec;
  };
  void note(const OpDef& op, Inputs inputs);
  // Notes a tensor that the function hands on.
  void note(const Tensor& tensor, bool carries_gradient = true);
  // The function has reached a graph through a captured tensor. It records there from now on, in a
  // region of its own, until this collector goes. Throws Error if it has read a tape before.
  void enter(Recorder& graph, CallSite site);
  bool in_graph() const noexcept { return static_cast<bool>(graph_); }
  const std::vector<Found>& found() const noexcept { return found_; }
  // Whether a gradient would flow into a result of a compiled step, which has no history.
  bool lost_history() const noexcept { return lost_history_; }
  std::vector<Kept>& captures() noexcept { return captures_; }

  EdgeCollector() = default;
  ~EdgeCollector() {
    if (graph_) graph_->end_recompute();
  }

 private:
  const std::uint64_t start_ = Storage::next_serial();  // memory made later is the function's own
  std::vector<Found> found_;
  std::vector<Kept> captures_;
  std::set<std::pair<const Node*, std::uint32_t>> known_;
  std::unordered_set<const Storage*> known_captures_;
  bool lost_history_ = false;
  Ref<Recorder> graph_;
};
}  // namespace detail

}  // namespace ebb
