#include "ebb/optim/accumulator.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/detail/reduction.h"
#include "ebb/optim/groups.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::optim {

namespace {

// The parameters that this accumulator has sums for.
struct Accumulated {
  Targets targets;  // the parameters that are trained
  Tensors frozen;   // sums of the frozen ones
};
Accumulated accumulated_by(const Optimizer& optimizer, const Parameters& parameters) {
  const std::vector<Parameters::Entry>& entries = parameters.entries();
  const std::string slot = '/' + OptimizerStep::sum_name(optimizer, parameters);
  Accumulated accumulated;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string sum = entries[i].name.substr(parameters.prefix().size()) + slot;
    if (!parameters.contains(sum)) continue;
    if (parameters.is_trainable(entries[i]))
      accumulated.targets.push_back(i);
    else
      accumulated.frozen.push_back(parameters[sum]);
  }
  return accumulated;
}

// Targets of this micro-step: the parameters below the loss, and all that earlier micro-steps of
// the group have sums for. In a graph a micro-step is built once and cannot know what a later one
// accumulates, so all of them must have the same targets.
Targets with_accumulated(const Targets& below, bool in_graph, const Targets& known) {
  if (in_graph && !known.empty() && known != below)
    refuse("minimize",
           "the loss depends on other parameters than an earlier micro-step of this accumulator in "
           "the graph; give one of their optimizers a .name");
  Targets all;
  std::set_union(below.begin(), below.end(), known.begin(), known.end(), std::back_inserter(all));
  return all;
}

// One group's part of a micro-step or a flush. A group whose parameters are all frozen has no
// targets, but still counts samples, so that it is in step with the others once it is thawed.
struct Part {
  const ParameterGroup& group;
  Accumulated before;
  OptimizerStep step;
  Tensors gradients = {};  // of the targets; undefined where the loss depends on none
  Tensor count, counted;   // samples before this micro-step, and with it
  Gate gate = {};
  Tensors sums = {};

  Part(const ParameterGroup& of, Accumulated accumulated, Targets targets,
       const AccumulatorOptions& options)
      : group(of),
        before(std::move(accumulated)),
        step(of.optimizer, of.parameters, std::move(targets),
             options.sum_dtype.value_or(state_dtype_of(of.parameters.dtype()))),
        count(step.samples()) {}

  Tensor mean(const Tensor& sum) const { return sum / cast(counted, sum.dtype()); }
};
using Parts = std::deque<Part>;

// Updates with the sums where the gates are open, and clears all sums, the frozen parameters'
// included, so that nothing of this batch is left for the next.
std::vector<Tensor> update_and_clear(Parts& parts) {
  std::vector<Tensor> updates;
  for (Part& part : parts) {
    if (part.step.size() > 0)
      for (Tensor& update : part.step.queue(part.sums)) updates.push_back(std::move(update));
    for (const Tensors* cleared : {&part.sums, &part.before.frozen})
      for (const Tensor& sum : *cleared)
        updates.push_back(ebb::detail::clear_if(sum, part.gate.ready));
    updates.push_back(ebb::detail::clear_if(part.count, part.gate.ready));
  }
  return updates;
}

// The sums and counts of an eager accumulation.
template <class Function>
void for_state(const Parts& parts, const Function& function) noexcept {
  for (const Part& part : parts) {
    for (std::size_t i = 0; i < part.step.size(); ++i) function(part.step.sum(i));
    for (const Tensor& sum : part.before.frozen) function(sum);
    function(part.step.samples());
  }
}

// Commits the updates of an accumulation. A failure that leaves a sum or a count torn tears all of
// them: together they are of no batch.
template <class Queue>
std::vector<Tensor> commit_whole(const Parts& parts, const Queue& queue) {
  try {
    return commit(queue);
  } catch (...) {
    bool torn = false;
    for_state(parts, [&](const Tensor& state) {
      torn |= !state.is_symbolic() && state.impl()->storage->torn_by();
    });
    if (torn)
      for_state(parts, [](const Tensor& state) { state.impl()->storage->tear("accumulator"); });
    throw;
  }
}

// A micro-batch, of one process or of all ranks.
struct Micro {
  Tensor loss;
  Tensor samples;
  Tensor weight;          // of the gradients in the sums
  bool are_sums = false;  // the gradients are the new sums
};

// Adds to the sums, on a GPU by one kernel for all, and counts.
void add_gradients(Parts& parts, const Micro& micro) {
  for (Part& part : parts)
    for (std::size_t i = 0; i < part.step.size(); ++i) {
      const Tensor &sum = part.step.sum(i), &gradient = part.gradients[i];
      part.sums.push_back(!gradient.defined() ? sum
                          : micro.are_sums    ? assign(sum, gradient)
                                           : apply_one(accumulate_op, {sum, gradient, micro.weight},
                                                       {}, CallSite::here()));
    }
  for (Part& part : parts)
    part.count = part.count.is_symbolic() ? part.counted : assign(part.count, part.counted);
}

// The gradients of the targets of all parts, by one backward pass. With a world they are summed
// over it.
Micro differentiate(Parts& parts, const Tensor& loss, const Tensor& samples,
                    const std::vector<Targets>& below,
                    const std::optional<distributed::World>& world) {
  Tensors inputs, sums;
  Entries entries;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const std::size_t target : below[p]) {
      entries.push_back(&parts[p].group.parameters.entries()[target]);
      inputs.push_back(entries.back()->tensor);
      if (world && is_in_order(*world))
        sums.push_back(parts[p].step.sum(parts[p].step.position(target)));
    }
  Micro micro{loss, samples, samples};
  Tensors found;
  if (world) {
    Summed summed = sum_over(*world, entries, samples, loss, std::move(sums),
                             [&](const ebb::detail::TakeGradient& take) {
                               ebb::detail::gradients_for("minimize", loss, inputs, {}, take);
                             });
    found = std::move(summed.sums);
    micro = {summed.loss, summed.count, fill_like(samples, 1), is_in_order(*world)};
  } else {
    found = ebb::detail::gradients_for("minimize", loss, inputs);
  }
  std::size_t next = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].gradients = Tensors(parts[p].step.size());
    for (const std::size_t target : below[p])
      parts[p].gradients[parts[p].step.position(target)] = std::move(found[next++]);
  }
  return micro;
}

// Accumulator::minimize.
Tensor accumulate(const Tensor& given, const std::vector<ParameterGroup>& groups,
                  const AccumulatorOptions& options, const Tensor& given_samples) {
  // Holds the two: a function called when memory is short may give up the caller's handles.
  const Tensor loss = given, samples = given_samples;
  std::vector<Targets> below;
  NodesBelow history;
  std::unordered_set<const Node*> seen;
  bool any = false;
  for (const auto& [parameters, optimizer] : groups) {
    below.push_back(trained_below(loss, parameters, "minimize", history));
    any |= !below.back().empty();
    for (const std::size_t target : below.back())
      require_unseen(parameters.entries()[target], seen);
  }
  if (!any) fail_for_frozen(loss);
  if (!samples.defined() || (samples.is_symbolic() && !loss.is_symbolic()))
    refuse("minimize", "the number of samples, " + samples.to_string() +
                           ", does not belong to the loss, " + loss.to_string());
  const bool in_graph = groups.front().parameters.is_symbolic();
  Parts parts;
  for (std::size_t i = 0; i < below.size(); ++i) {
    const ParameterGroup& group = groups[i];
    Accumulated before = accumulated_by(group.optimizer, group.parameters);
    Targets targets = with_accumulated(below[i], in_graph, before.targets);
    parts.emplace_back(group, std::move(before), std::move(targets), options);
  }
  const std::optional<distributed::World>& world = world_of(groups, "minimize");
  return with_ranks(world, [&] {
    const Micro micro = differentiate(parts, loss, samples, below, world);

    // Knowing whether an update is due takes memory, which must be had before anything is written,
    // so eager counts in a copy first. A graph has all its memory before it starts.
    for (Part& part : parts) {
      part.counted =
          ebb::detail::add_count(in_graph ? part.count : copy(part.count), micro.samples);
      part.gate = {ebb::detail::at_least(part.counted, options.samples), part.counted};
      if (part.step.size() == 0) continue;
      // Computes the mean beside the sum, not in it: a rule of the user's may throw.
      part.step.prepare(part.gate, [&](std::size_t i) {
        const Tensor& sum = part.step.sum(i);
        const Tensor& gradient = part.gradients[i];
        if (!gradient.defined()) return part.mean(sum);
        if (micro.are_sums) return part.mean(gradient);
        return part.mean(sum + cast(gradient, sum.dtype()) * cast(micro.weight, sum.dtype()));
      });
    }

    const Tensor value = value_before_step(micro.loss);
    const std::vector<Tensor> updates = commit_whole(parts, [&] {
      add_gradients(parts, micro);
      return update_and_clear(parts);
    });
    return with_all_updates(value, updates);
  });
}

Tensor flush_accumulated(const std::vector<ParameterGroup>& groups,
                         const AccumulatorOptions& options) {
  std::vector<Accumulated> accumulated;
  bool any = false, any_frozen = false;
  for (const auto& [parameters, optimizer] : groups) {
    const Accumulated& its = accumulated.emplace_back(accumulated_by(optimizer, parameters));
    any |= !its.targets.empty();
    any_frozen |= !its.frozen.empty();
  }
  if (!any && any_frozen)
    refuse("flush",
           "every given parameter with an accumulated gradient is frozen by set_trainable(false); "
           "what they have accumulated is still there");
  if (!any)
    refuse("flush", "nothing has been accumulated for these parameters; minimize() does that");
  Parts parts;
  for (std::size_t i = 0; i < accumulated.size(); ++i) {
    Targets targets = accumulated[i].targets;
    parts.emplace_back(groups[i], std::move(accumulated[i]), std::move(targets), options);
  }

  for (Part& part : parts) {
    part.counted = copy(part.count);
    part.gate = {ebb::detail::at_least(part.counted, 1), part.counted};
    for (std::size_t i = 0; i < part.step.size(); ++i) part.sums.push_back(part.step.sum(i));
    if (part.step.size() > 0)
      part.step.prepare(part.gate, [&](std::size_t i) { return part.mean(part.step.sum(i)); });
  }
  const Tensor applied =
      std::ranges::find_if(parts, [](const Part& part) { return part.step.size() > 0; })->counted;
  const std::vector<Tensor> updates = commit_whole(parts, [&] { return update_and_clear(parts); });
  return with_all_updates(applied, updates);
}

// Throws Error for an option out of range.
void require_options(const AccumulatorOptions& options) {
  if (options.samples < 1)
    refuse("accumulator", "samples = " + std::to_string(options.samples) + " is below 1");
  require_state_dtype("accumulator", "sum_dtype", options.sum_dtype);
}

}  // namespace

Accumulator::Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options,
                         CallSite site)
    : optimizer_(optimizer), options_(options) {
  const ebb::detail::CallSiteScope at(site);
  require_options(options);
}

Tensor Accumulator::minimize(const Tensor& loss, const Parameters& parameters,
                             const Tensor& samples, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return accumulate(loss, {{parameters, optimizer_}}, options_, samples);
}

Tensor Accumulator::flush(const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return flush_accumulated({{parameters, optimizer_}}, options_);
}

GroupAccumulator::GroupAccumulator(std::vector<ParameterGroup> groups,
                                   const AccumulatorOptions& options, CallSite site)
    : groups_(std::move(groups)), options_(options) {
  const ebb::detail::CallSiteScope at(site);
  if (groups_.empty()) refuse("accumulator", "takes one group of parameters or more");
  require_options(options);
}

Tensor GroupAccumulator::minimize(const Tensor& loss, const Tensor& samples, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return accumulate(loss, groups_, options_, samples);
}

Tensor GroupAccumulator::flush(CallSite site) const {
  const ebb::detail::CallScope at(site);
  return flush_accumulated(groups_, options_);
}

constinit const OpDef accumulate_op{
    .name = "accumulate",
    .infer =
        [](Inference& inference) {
          infer_sums(inference, "sums", "gradients");
          ebb::detail::require_scalar(inference, 2, DType::i64, "rows");
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::accumulate},
    .cuda = {.run = cuda::accumulate, .run_merged = cuda::accumulate_merged}};

}  // namespace ebb::optim
