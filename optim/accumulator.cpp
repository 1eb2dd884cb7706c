#include "ebb/optim/accumulator.h"

#include <algorithm>
#include <iterator>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/launch_row.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::optim {

namespace {

// What a failure leaves of a micro-step is neither the group before it nor the one after.
void tear(const Tensors& sums, const Tensor& count) noexcept {
  const auto of = [](const Tensor& tensor) {
    if (!tensor.is_symbolic()) tensor.impl()->storage->tear("accumulator");
  };
  for (const Tensor& sum : sums) of(sum);
  of(count);
}

// Updates with the sums where the gate is open, and clears them and those of frozen parameters:
// nothing of a group is left for the next.
std::vector<Tensor> commit_and_clear(OptimizerStep& step, const Tensors& sums,
                                     const Tensors& frozen, const Tensor& count, const Gate& gate) {
  try {
    std::vector<Tensor> updates = step.commit(sums);
    for (const Tensors* cleared : {&sums, &frozen})
      for (const Tensor& sum : *cleared) updates.push_back(ebb::detail::clear_if(sum, gate.ready));
    updates.push_back(ebb::detail::clear_if(count, gate.ready));
    return updates;
  } catch (...) {
    tear(sums, count);
    tear(frozen, count);
    throw;
  }
}

// Adds to the sums, all of which it returns.
Tensors accumulate(const OptimizerStep& step, const Tensors& gradients, const Tensor& samples) {
  Tensors sums;
  ebb::detail::LaunchRow row;
  try {
    for (std::size_t i = 0; i < step.size(); ++i)
      sums.push_back(
          gradients[i].defined()
              ? apply_one(accumulate_op, {step.sum(i), gradients[i], samples}, {}, CallSite::here())
              : step.sum(i));
    row.flush();
  } catch (...) {
    if (!sums.empty() && !row.has_done_nothing()) tear(sums, step.samples());
    throw;
  }
  return sums;
}

// A gradient as a rule sees it.
Tensor mean_of(const Tensor& sum, const Tensor& count, const Parameters& parameters) {
  return cast(sum / cast(count, sum.dtype()), state_dtype_of(parameters.dtype()));
}

// What this accumulator has sums for.
struct Accumulated {
  Targets targets;  // the parameters that are trained
  Tensors frozen;   // the sums of the others
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

// Whichever micro-step completes a group updates all that the group has accumulated. In a graph a
// micro-step is built once, and could not know what one built later accumulates.
Targets with_accumulated(const Targets& below, const Tensor& loss, const Targets& known) {
  if (loss.is_symbolic() && !known.empty() && known != below)
    fail("minimize",
         "the loss depends on other parameters than an earlier micro-step of this "
         "accumulator in the graph; give one of their optimizers a .name");
  Targets all;
  std::set_union(below.begin(), below.end(), known.begin(), known.end(), std::back_inserter(all));
  return all;
}

}  // namespace

Accumulator::Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options,
                         CallSite site)
    : optimizer_(optimizer), options_(options) {
  const ebb::detail::CallSiteScope at(site);
  if (options.samples < 1)
    fail("accumulator", "samples = " + std::to_string(options.samples) + " is below 1");
  require_state_dtype("accumulator", "sum_dtype", options.sum_dtype);
}

Tensor Accumulator::minimize(const Tensor& given, const Parameters& parameters,
                             const Tensor& given_samples, CallSite site) const {
  const ebb::detail::CallScope at(site);
  // What is called when memory is short may give the caller's handles up.
  const Tensor loss = given, samples = given_samples;
  const Targets below = parameters_below(loss, parameters, "minimize");
  if (!samples.defined() || (samples.is_symbolic() && !loss.is_symbolic()))
    fail("minimize", "the number of samples, " + samples.to_string() +
                         ", does not belong to the loss, " + loss.to_string());
  const Accumulated before = accumulated_by(optimizer_, parameters);
  OptimizerStep step(optimizer_, parameters, with_accumulated(below, loss, before.targets),
                     sum_dtype(parameters));
  // Not defined() for what this loss does not depend on, but an earlier one of the group did.
  const Tensors gradients = step.gradients_of(loss, below);

  // Whether an update is due must be known before anything is written, and takes memory to know: so
  // eager counts in a copy first. A graph has all its memory before it starts.
  Tensor count = step.samples();
  const Tensor counted = ebb::detail::add_count(loss.is_symbolic() ? count : copy(count), samples);
  const Gate gate{ebb::detail::at_least(counted, options_.samples), counted};
  // What accumulates below, and its mean, beside the sum: a rule of the user's may throw.
  step.prepare(gate, [&](std::size_t i) {
    const Tensor sum = gradients[i].defined()
                           ? step.sum(i) + cast(gradients[i], step.sum(i).dtype()) *
                                               cast(samples, step.sum(i).dtype())
                           : step.sum(i);
    return mean_of(sum, counted, parameters);
  });

  step.begin_writing();
  const Tensors sums = accumulate(step, gradients, samples);
  try {
    count = loss.is_symbolic() ? counted : assign(count, counted);
  } catch (...) {
    tear(sums, count);
    throw;
  }
  const Tensor value = value_before_step(loss);
  const std::vector<Tensor> updates = commit_and_clear(step, sums, before.frozen, count, gate);
  return loss.is_symbolic() ? with_all_updates(value, updates) : value.detach();
}

Tensor Accumulator::flush(const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  const Accumulated accumulated = accumulated_by(optimizer_, parameters);
  if (accumulated.targets.empty() && !accumulated.frozen.empty())
    fail(
        "flush",
        "every parameter with an accumulated gradient is frozen by set_trainable(false); what they "
        "have accumulated is still there");
  if (accumulated.targets.empty())
    fail("flush", "nothing has been accumulated for these parameters; minimize() does that");
  OptimizerStep step(optimizer_, parameters, accumulated.targets, sum_dtype(parameters));

  const Tensor applied = copy(step.samples());
  const Gate gate{ebb::detail::at_least(applied, 1), applied};
  step.prepare(gate, [&](std::size_t i) { return mean_of(step.sum(i), applied, parameters); });
  Tensors sums;
  for (std::size_t i = 0; i < step.size(); ++i) sums.push_back(step.sum(i));
  const std::vector<Tensor> updates =
      commit_and_clear(step, sums, accumulated.frozen, step.samples(), gate);
  return parameters.is_symbolic() ? with_all_updates(applied, updates) : applied;
}

constinit const OpDef accumulate_op{
    .name = "accumulate",
    .infer =
        [](Inference& inference) {
          const Spec &sum = inference.inputs[0], &gradient = inference.inputs[1];
          if (!is_floating(sum.dtype) || is_half(sum.dtype))
            inference.fail("takes sums of f32 or f64");
          if (!is_floating(gradient.dtype)) inference.fail(ebb::detail::kTakesFloating);
          if (is_half(gradient.dtype) && sum.dtype != DType::f32)
            inference.fail("takes f32 sums of gradients of 16 bits");
          inference.require(ebb::detail::may_equal(sum.shape, gradient.shape),
                            "takes tensors of one shape");
          ebb::detail::require_scalar(inference, 2, DType::i64, "rows");
          ebb::detail::output_like_first(inference);
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::accumulate},
    .cuda = {.run = cuda::accumulate, .run_merged = cuda::accumulate_merged}};

}  // namespace ebb::optim
