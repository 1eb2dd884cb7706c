#include "ebb/optim/accumulator.h"

#include <algorithm>
#include <iterator>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/optim/detail/step.h"

namespace ebb::optim {

using ebb::detail::Gate;
using ebb::detail::message;

namespace {

// Updates with the sums where the gate is open, and clears them.
std::vector<Tensor> commit_and_clear(Step& step, const Tensors& sums, const Tensor& count,
                                     const Gate& gate, CallSite site) {
  std::vector<Tensor> updates = step.commit(sums);
  for (const Tensor& sum : sums) updates.push_back(ebb::detail::clear_if(sum, gate.ready, site));
  updates.push_back(ebb::detail::clear_if(count, gate.ready, site));
  return updates;
}

// The parameters that this accumulator has a sum for.
Targets accumulated_by(const Optimizer& optimizer, const Parameters& parameters) {
  const std::vector<Parameters::Entry>& entries = parameters.entries();
  const std::string sum = '/' + Step::sum_name(optimizer, parameters);
  Targets targets;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (parameters.contains(entries[i].name.substr(parameters.prefix().size()) + sum))
      targets.push_back(i);
  return targets;
}

// Whichever micro-step completes a group updates all that the group has accumulated. In a graph a
// micro-step is built once, and could not know what one built later accumulates.
Targets with_accumulated(const Targets& below, const Tensor& loss, const Parameters& parameters,
                         const Optimizer& optimizer, CallSite site) {
  const Targets known = accumulated_by(optimizer, parameters);
  if (loss.is_symbolic() && !known.empty() && known != below)
    throw Error(message("minimize",
                        "the loss depends on other parameters than an earlier micro-step of this "
                        "accumulator in the graph; give one of their optimizers a .name",
                        site));
  Targets all;
  std::set_union(below.begin(), below.end(), known.begin(), known.end(), std::back_inserter(all));
  return all;
}

}  // namespace

Accumulator::Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options)
    : optimizer_(optimizer), options_(options) {
  if (options.samples < 1)
    throw Error("[accumulator] samples = " + std::to_string(options.samples) + " is below 1");
}

Tensor Accumulator::minimize(const Tensor& loss, const Parameters& parameters,
                             const Tensor& samples, CallSite site) const {
  const ebb::detail::CallSiteScope at(site);
  const Targets below = parameters_below(loss, parameters, "minimize", site);
  if (!samples.defined() || (samples.is_symbolic() && !loss.is_symbolic()))
    throw Error(message("minimize",
                        "the number of samples, " + samples.to_string() +
                            ", does not belong to the loss, " + loss.to_string(),
                        site));
  Step step(optimizer_, parameters, with_accumulated(below, loss, parameters, optimizer_, site),
            Step::Gradients::accumulated, site);
  // Not defined() for what this loss does not depend on, but an earlier one of the group did.
  const Tensors gradients = step.gradients_of(loss, below);

  // Whether an update is due must be known before anything is written, and takes memory to know: so
  // eager counts in a copy first. A graph has all its memory before it starts.
  Tensor count = step.samples();
  const Tensor counted =
      ebb::detail::add_count(loss.is_symbolic() ? count : copy(count), samples, site);
  const Gate gate{ebb::detail::at_least(counted, options_.samples, site), counted};
  // What accumulates below, and its mean, beside the sum: a rule of the user's may throw.
  step.prepare(gate, [&](std::size_t i) {
    const DType dtype = parameters.dtype();
    const Tensor sum =
        gradients[i].defined() ? step.sum(i) + gradients[i] * cast(samples, dtype) : step.sum(i);
    return sum / cast(counted, dtype);
  });

  step.begin_writing();
  Tensors sums;
  for (std::size_t i = 0; i < step.size(); ++i)
    sums.push_back(gradients[i].defined()
                       ? ebb::detail::accumulate(step.sum(i), gradients[i], samples, site)
                       : step.sum(i));
  count = loss.is_symbolic() ? counted : assign(count, counted);
  const Tensor value = value_before_step(loss, site);
  const std::vector<Tensor> updates = commit_and_clear(step, sums, count, gate, site);
  return loss.is_symbolic() ? with_all_updates(value, updates, site) : value.detach();
}

Tensor Accumulator::flush(const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallSiteScope at(site);
  Targets accumulated = accumulated_by(optimizer_, parameters);
  if (accumulated.empty())
    throw Error(message(
        "flush", "nothing has been accumulated for these parameters; minimize() does that", site));
  Step step(optimizer_, parameters, std::move(accumulated), Step::Gradients::accumulated, site);

  const Tensor applied = copy(step.samples());
  const Gate gate{ebb::detail::at_least(applied, 1, site), applied};
  step.prepare(gate,
               [&](std::size_t i) { return step.sum(i) / cast(applied, parameters.dtype()); });
  Tensors sums;
  for (std::size_t i = 0; i < step.size(); ++i) sums.push_back(step.sum(i));
  const std::vector<Tensor> updates = commit_and_clear(step, sums, step.samples(), gate, site);
  return parameters.is_symbolic() ? with_all_updates(applied, updates, site) : applied;
}

}  // namespace ebb::optim
