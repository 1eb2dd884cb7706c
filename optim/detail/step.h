#pragma once
#include <string>
#include <vector>

#include "ebb/optim/optimizer.h"

namespace ebb::optim {

using Targets = std::vector<const Parameters::Entry*>;

// The parameters that `loss` was computed from. Throws Error where there is none, or where one of
// the two belongs to a graph and the other does not.
Targets parameters_below(const Tensor& loss, const Parameters& parameters, const char* what,
                         CallSite site);
// `loss`, computed after the updates.
Tensor with_all_updates(Tensor loss, std::span<const Tensor> updates, CallSite site);

// One step of an optimizer over some parameters: it gets all memory first, and the writing is one
// call at the end. Slots that were made for a step that did not come to that are taken back.
class Step {
 public:
  // Finds or makes the rule's slots and `further` ones.
  Step(const Optimizer& optimizer, const Parameters& parameters, Targets targets,
       std::vector<SlotRequest> further, CallSite site);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  const Targets& targets() const noexcept { return targets_; }
  // The i-th of `further`.
  const Tensor& further(std::size_t i) const noexcept { return slots_[first_further_ + i]; }
  // Differentiates with respect to the targets, in their order.
  Tensors gradients_of(const Tensor& loss) const;
  // Gets the learning rate: the last memory that the step needs.
  void prepare();
  // From here on writes happen.
  void begin_writing() noexcept { writes_ = true; }
  // Updates the targets in place, in the gate's terms, and counts the step. Returns what makes it
  // happen in a graph.
  std::vector<Tensor> update(const Tensors& gradients, const ebb::detail::Gate& gate);

 private:
  const Optimizer& optimizer_;
  const Parameters& parameters_;
  const Targets targets_;
  const CallSite site_;
  const std::size_t slots_before_;
  std::size_t first_further_ = 0;
  Tensors slots_;  // of each target in turn, the count of steps, further
  Tensor rate_;
  bool writes_ = false;
};

}  // namespace ebb::optim
