#pragma once
#include <memory>
#include <optional>
#include <string>

#include "ebb/core/device/world.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/optim/clip.h"
#include "ebb/optim/learning_rate.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

// Makes steps: an update rule with a learning rate. Holds options only: moments and the count of
// steps are slots in Parameters, on the device, made at the first step. Slots belong to the handle
// that a step is given (the set or a scope of it), the rule and the optimizer's name: two
// optimizers equal in all three share their slots, all others have their own. Sgd, Adam, AdamW,
// Rmsprop, Adagrad and Lion are optimizers with their rules.
//
// With a world, gradients are averaged over its ranks before anything else is done with them, and
// weighted by the rows of each: those of the batch in use of a DataLoader over the same world
// (.shard), or one each without such a loader: of a loss that is a mean over rows. All ranks make
// the step, also one without rows, and have the same parameters after it as before.
//
// A step allocates everything, on device and host, before it writes a byte. When it throws
// (std::bad_alloc too), parameters, slots and counts are unchanged, its memory is free again, and
// it has drawn no random numbers. For a whole training step, of which this is the last line, see
// attempt().
class Optimizer {
 public:
  // Throws Error where the names of rule, slots or optimizer have a '/', '.' or ':', for clipping
  // limits that are not finite and >= 0, and for more than one limit.
  Optimizer(std::shared_ptr<const Rule> rule, LearningRate learning_rate, std::string name = {},
            const Clip& clip = {}, CallSite site = CallSite::here(),
            const std::optional<distributed::World>& world = {});

  // Differentiates `loss` (one element) with respect to the parameters below this handle and
  // updates the ones it depends on; all others are constants. Leaves .grad() alone. Eager: makes
  // the step now, frees the loss's tape and returns the loss without history. In a graph: returns
  // the loss as a node that takes the updates along, so that a run that fetches it makes the step.
  // Throws Error where the loss depends on no parameter, or where loss and parameters do not belong
  // to one graph or both to none; OutOfMemory.
  Tensor minimize(const Tensor& loss, const Parameters& parameters,
                  CallSite site = CallSite::here()) const;

  // Updates with gradients of your own: clipped, averaged over machines, of several losses. Takes
  // one for each of parameters.entries(), of its shape and dtype; where one is not defined(), that
  // parameter and its slots stay. Eager: makes the step now. In a graph: a run that fetches the
  // result makes it. Returns the count of steps, i64[] (eager: the slot itself, which goes on
  // counting). Throws Error for another number of gradients, none that is defined, one that does
  // not fit its parameter, or a parameter's own .grad() after a backward() that failed half-way;
  // OutOfMemory. A gradient that was computed from such a .grad(), say clipped out of place, cannot
  // be told.
  Tensor apply(const Tensors& gradients, const Parameters& parameters,
               CallSite site = CallSite::here()) const;

  // Eager: updates every parameter below this handle that has a .grad(), which stays. Throws Error
  // where none has one, where one is from a backward() that failed half-way, and for a graph's
  // parameters (use minimize); OutOfMemory.
  void step(const Parameters& parameters, CallSite site = CallSite::here()) const;

  const Rule& rule() const noexcept { return *rule_; }
  const LearningRate& learning_rate() const noexcept { return learning_rate_; }
  const std::string& name() const noexcept { return name_; }
  const Clip& clip() const noexcept { return clip_; }
  const std::optional<distributed::World>& world() const noexcept { return world_; }

 private:
  std::shared_ptr<const Rule> rule_;
  LearningRate learning_rate_;
  std::string name_;
  Clip clip_;
  std::optional<distributed::World> world_;
};

// An optimizer that comes with ebb: its rule with these options.
template <class Options>
class OptimizerOf : public Optimizer {
 public:
  // Throws Error for an option out of range.
  explicit OptimizerOf(const Options& options = {}, CallSite site = CallSite::here());
  template <int = 0>  // so that a list in braces is the options
  explicit OptimizerOf(const LearningRate& rate, CallSite site = CallSite::here())
      : OptimizerOf(Options{.learning_rate = rate}, site) {}
};

}  // namespace ebb::optim
