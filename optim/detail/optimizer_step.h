#pragma once
#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/tensor/launch_row.h"
#include "ebb/optim/detail/update_rule.h"
#include "ebb/optim/groups.h"
#include "ebb/optim/optimizer.h"

namespace ebb::optim {

// All of this expects to run inside the CallSiteScope of the user's call.

using ebb::detail::refuse;

// Positions in Parameters::entries().
using Targets = std::vector<std::size_t>;

// The trainable parameters that `loss` was computed from; none where all of the parameters, or all
// that the loss depends on, are frozen. Throws Error where it depends on none, or where only one of
// loss and parameters belongs to a graph. `below` is the loss's history: empty at first, then
// reused for further sets of parameters.
using NodesBelow = std::unordered_set<const Node*>;
Targets trained_below(const Tensor& loss, const Parameters& parameters, const char* what,
                      NodesBelow& below);
[[noreturn]] void fail_for_frozen(const Tensor& loss);
// The world of all groups' optimizers. Throws Error where they have several.
const std::optional<distributed::World>& world_of(const std::vector<ParameterGroup>& groups,
                                                  const char* what);
// Throws Error for a parameter that an earlier group has already.
void require_unseen(const Parameters::Entry& entry, std::unordered_set<const Node*>& seen);
// The value that a step returns for `loss`; in eager without history. A copy where the loss is a
// parameter or a view of one, since the step changes it.
Tensor value_before_step(const Tensor& loss);
// In a graph `value` as one that exists only after the updates; in eager they have happened.
Tensor with_all_updates(Tensor value, std::span<const Tensor> updates);

// The memory that a step writes: storage of concrete tensors, or a graph's variables.
class WrittenMemory {
 public:
  void add(const Tensor& tensor) { written_.insert(memory_of(tensor)); }
  // Whether the step could change this value, so that it must be copied first.
  bool holds(const Tensor& value) const { return written_.contains(memory_of(value)); }
  // Whether the two are the same value already.
  static bool same(const Tensor& a, const Tensor& b) noexcept;

 private:
  static const void* memory_of(const Tensor& tensor) noexcept;
  std::unordered_set<const void*> written_;
};

// Launches the updates that queue() returns in one row, once all of them have their memory.
template <class Queue>
std::vector<Tensor> commit(const Queue& queue) {
  ebb::detail::LaunchRow row(ebb::detail::LaunchRow::stays);
  std::vector<Tensor> updates = queue();
  if (!ebb::detail::tape_mode().trace) ebb::detail::Attempt::keep();
  row.flush();
  return updates;
}

// One step of an optimizer over some parameters. It first allocates everything, on device and host;
// the writing takes no memory and is one call at the end. Where an exception leaves its scope, it
// removes the slots that it has made.
class OptimizerStep : NoCopy {
 public:
  // Finds or makes the slots: the rule's, and for accumulation a sum of dtype `sums` per target and
  // a count of samples.
  OptimizerStep(const Optimizer& optimizer, const Parameters& parameters, Targets targets,
                std::optional<DType> sums = {});
  ~OptimizerStep();

  // Name of the slot of accumulated gradients: the part after the '/' and the parameter's name.
  static std::string sum_name(const Optimizer& optimizer, const Parameters& parameters);

  std::size_t size() const noexcept { return targets_.size(); }
  // Position of a target within this step.
  std::size_t position(std::size_t target) const noexcept {
    return static_cast<std::size_t>(std::ranges::lower_bound(targets_, target) - targets_.begin());
  }
  // For accumulation: the i-th target's sum, and the count of samples.
  const Tensor& sum(std::size_t i) const noexcept { return slots_[(i + 1) * per_target_ - 1]; }
  const Tensor& samples() const noexcept { return slots_[slots_.size() - 1]; }

  // Computes everything that takes memory: the learning rate and, for a rule that is not fused, all
  // new values, from gradient(i) of the i-th target. `gate` decides on the device whether they are
  // written.
  void prepare(Gate gate, const std::function<Tensor(std::size_t)>& gradient);
  // Queues the step in the current LaunchRow, or records it in a graph: increments its count and
  // updates each target in place. A fused rule takes `gradients`, which the gate divides. Returns
  // the updated tensors, the count of steps first; in a graph, fetching them makes the step.
  std::vector<Tensor> queue(const Tensors& gradients);

 private:
  // Clips gradients for a rule that is not fused.
  Tensors clipped(const Tensors& gradients);
  // Applies clip_scale to the gradients of the whole step, or to one of them.
  Tensor scale_of(const Gate& gate, double limit, std::span<const Tensor> gradients);
  // Without history: an update in place of a leaf is not recorded.
  Tensor parameter(std::size_t i) const;
  // The part of a parameter, and of its gradient, that this rank updates.
  Tensor own(std::size_t i) const;
  Tensor own(const Tensor& gradient) const;
  std::span<const Tensor> slots_of(std::size_t i) const noexcept {
    return {slots_.data() + i * per_target_, optimizer_.rule().slots().size()};
  }
  const Tensor& count_of_steps() const noexcept { return slots_[targets_.size() * per_target_]; }
  const Tensor& gradient_norm() const noexcept { return slots_[targets_.size() * per_target_ + 1]; }
  void apply_rule(const std::function<Tensor(std::size_t)>& gradient);
  void check(const RuleResult& result, const Tensor& target, std::size_t i) const;
  // Throws for state of a dtype that cannot be beside the parameters; `in_kernel` says that a
  // kernel makes the update, which takes fewer combinations.
  void require_state(const char* what, DType state, bool in_kernel) const;

  const Optimizer& optimizer_;
  const Parameters& parameters_;
  const std::vector<Parameters::Entry>& entries_;
  const Targets targets_;
  const FusedRule* const fused_;                    // null for a user's rule
  const std::optional<distributed::World> shards_;  // the world whose ranks update shares
  const std::size_t slots_before_;
  std::size_t per_target_ = 0;
  Tensors slots_;  // per target, then the count of steps, the norm, the count of samples
  Gate gate_;
  Tensor rate_;
  Tensor clip_work_;                                   // work memory of clipping by a norm
  Tensor clip_norms_;                                  // of the ranks' shares
  std::vector<std::pair<Tensor, Tensor>> new_values_;  // a target, and what is written to it
  std::vector<bool> decays_;                           // per target of a fused rule
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace ebb::optim
