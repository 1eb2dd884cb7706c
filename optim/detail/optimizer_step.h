#pragma once
#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/tensor/launch_row.h"
#include "ebb/optim/detail/fused_rule.h"
#include "ebb/optim/optimizer.h"

namespace ebb::optim {

// All of this works inside the CallSiteScope of the call that a step is made for.

// Throws Error "[what] text" with that call's line.
[[noreturn]] void fail(const char* what, const std::string& text);

// Positions in Parameters::entries().
using Targets = std::vector<std::size_t>;

// The parameters that `loss` was computed from. Throws Error where there is none, or where one of
// the two belongs to a graph and the other does not.
Targets parameters_below(const Tensor& loss, const Parameters& parameters, const char* what);
// The same, but none where all parameters are frozen, or all of those. `below` is the loss's
// history, empty at first: found once for several sets of parameters.
using NodesBelow = std::unordered_set<const Node*>;
Targets trained_below(const Tensor& loss, const Parameters& parameters, const char* what,
                      NodesBelow& below);
// Throws Error: the parameters, "parameter" or "parameter of ...", are frozen.
[[noreturn]] void fail_for_frozen(const char* what, const char* parameter, const Tensor& loss);
// Throws Error for a parameter that is there already: of a group before.
void require_unseen(const Parameters::Entry& entry, std::unordered_set<const Node*>& seen);
// What a step returns of `loss`, eager's without history: a copy where it is a parameter or a view
// of one, which the step changes.
Tensor value_before_step(const Tensor& loss);
// `loss`, computed after the updates.
Tensor with_all_updates(Tensor loss, std::span<const Tensor> updates);

// Makes the updates that queue() gives, in one row, once all of them have their memory.
template <class Queue>
std::vector<Tensor> commit(const Queue& queue) {
  ebb::detail::LaunchRow row(ebb::detail::LaunchRow::stays);
  std::vector<Tensor> updates = queue();
  ebb::detail::Attempt::keep();
  row.flush();
  return updates;
}

// One step of an optimizer over some parameters: it gets all memory of device and host first, and
// the writing, which takes none, is one call at the end. Where an exception leaves its scope, slots
// that it has made are taken back.
class OptimizerStep {
 public:
  // Finds or makes the slots: the rule's, and for accumulation a sum of dtype `sums` per target and
  // a count of samples.
  OptimizerStep(const Optimizer& optimizer, const Parameters& parameters, Targets targets,
                std::optional<DType> sums = {});
  ~OptimizerStep();
  OptimizerStep(const OptimizerStep&) = delete;
  OptimizerStep& operator=(const OptimizerStep&) = delete;

  // What follows the '/' in the name of the slot with a parameter's accumulated gradient.
  static std::string sum_name(const Optimizer& optimizer, const Parameters& parameters);

  std::size_t size() const noexcept { return targets_.size(); }
  // Which of the targets this one is.
  std::size_t position(std::size_t target) const noexcept {
    return static_cast<std::size_t>(std::ranges::lower_bound(targets_, target) - targets_.begin());
  }
  // Differentiates with respect to the targets, in their order.
  Tensors gradients_of(const Tensor& loss) const;
  // Of accumulation: the i-th target's sum, and the count of samples.
  const Tensor& sum(std::size_t i) const noexcept { return slots_[(i + 1) * per_target_ - 1]; }
  const Tensor& samples() const noexcept { return slots_[slots_.size() - 1]; }

  // Computes what takes memory: the learning rate and, by a rule that is not fused, all new values,
  // from gradient(i) of the i-th target. `gate` says whether they are written.
  void prepare(Gate gate, const std::function<Tensor(std::size_t)>& gradient);
  // Queues the step in the LaunchRow that is there, or records it in a graph: its count, and an
  // update of each target in place, a fused rule's by `gradients`, which the gate divides. Returns
  // what makes it happen in a graph, the count of steps first.
  std::vector<Tensor> queue(const Tensors& gradients);
  // Queues it and makes it.
  std::vector<Tensor> commit(const Tensors& gradients);

 private:
  // The clipped gradients of a rule that is not fused.
  Tensors clipped(const Tensors& gradients);
  // A new value and where it goes.
  struct Write {
    Tensor target;
    Tensor value;
  };
  Tensor parameter(std::size_t i) const;
  std::span<const Tensor> slots_of(std::size_t i) const noexcept {
    return {slots_.data() + i * per_target_, optimizer_.rule().slots().size()};
  }
  const Tensor& count_of_steps() const noexcept { return slots_[targets_.size() * per_target_]; }
  void apply_rule(const std::function<Tensor(std::size_t)>& gradient);
  void check(const RuleResult& result, std::size_t i) const;
  // Throws for state of a dtype that cannot be beside the parameters, or not in an update that is a
  // kernel.
  void require_state(const char* what, DType state, bool in_kernel) const;

  const Optimizer& optimizer_;
  const Parameters& parameters_;
  const std::vector<Parameters::Entry>& entries_;
  const Targets targets_;
  const FusedRule* const fused_;  // or null
  const std::size_t slots_before_;
  std::size_t per_target_ = 0;
  Tensors slots_;  // of each target in turn, the count of steps, the count of samples
  Gate gate_;
  Tensor rate_;
  Tensor clip_work_;               // where gradients are clipped by a norm
  std::vector<Write> new_values_;  // of a rule that is not fused
  std::vector<bool> decays_;       // whether a fused one's decay is for each target; empty: for all
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace ebb::optim
