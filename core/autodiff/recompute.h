#pragma once
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tape_record.h"

namespace ebb {

// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016), in
// both modes: computes function(inputs) without keeping anything inside it for the gradient, and
// computes it again when the gradient needs it, drawing the same random numbers. Gradients equal
// those without, but for the order in which several readers' are summed. Eagerly `function` lives
// on until the backward pass, and so must what it captures by reference. That pass throws Error
// where something that it reads has been updated in place since, by the function itself too; a
// function that takes gradients is refused. A graph makes updates of state once and takes either.
//
// backward({.create_graph = true}) gives a leaf a gradient with a history, which may hold
// `function` too. Where that has captured the leaf, or a model of it, by value, the leaf holds
// itself: capture by reference, or call zero_grad() before the last handle goes.
Tensors recompute(std::function<Tensors(const Tensors&)> function, const Tensors& inputs,
                  CallSite site = CallSite::here());
// The form for one tensor in and one out.
Tensor recompute(std::function<Tensor(const Tensor&)> function, const Tensor& input,
                 CallSite site = CallSite::here());

namespace detail {
// Finds out what a function reads that it did not make: tensors with a history (its arguments, and
// parameters that it captured), and the memory that must be as it was when it runs again.
class EdgeCollector {
 public:
  struct Found {
    Ref<Node> node;
    std::uint32_t output;
    Spec spec;
  };
  void note(const OpDef& op, Inputs inputs);
  // A tensor that the function hands on.
  void note(const Tensor& tensor, bool carries_gradient = true);
  // The function has reached a graph, by what it captured: it records there from now on, in a
  // region of its own, until this collector goes. Throws Error where it has read a tape before.
  void enter(Recorder& graph, CallSite site);
  bool in_graph() const noexcept { return static_cast<bool>(graph_); }
  const std::vector<Found>& found() const noexcept { return found_; }
  std::vector<Kept>& captures() noexcept { return captures_; }

  EdgeCollector() = default;
  ~EdgeCollector() {
    if (graph_) graph_->end_recompute();
  }
  EdgeCollector(const EdgeCollector&) = delete;
  EdgeCollector& operator=(const EdgeCollector&) = delete;

 private:
  const std::uint64_t start_ = Storage::next_serial();  // memory made later is the function's own
  std::vector<Found> found_;
  std::vector<Kept> captures_;
  std::set<std::pair<const Node*, std::uint32_t>> known_;
  std::unordered_set<const Storage*> known_captures_;
  Ref<Recorder> graph_;
};
}  // namespace detail

}  // namespace ebb
