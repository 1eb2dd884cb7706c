#include "ebb/optim/accumulator.h"

#include "ebb/core/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/optim/detail/step.h"

namespace ebb::optim {

namespace {

constexpr const char* kSum = "/accumulated";
constexpr const char* kCount = "accumulated/samples";

// A sum per target, then the count of samples.
std::vector<SlotRequest> slots_for(const Targets& targets) {
  std::vector<SlotRequest> slots;
  for (const Parameters::Entry* target : targets)
    slots.push_back({target->name + kSum,
                     {target->tensor.dtype(), target->tensor.shape()},
                     memory::Category::gradient});
  slots.push_back({kCount, {DType::i64, {}}, memory::Category::gradient});
  return slots;
}

// Updates with the sums where the gate is open, and clears them.
std::vector<Tensor> update_and_clear(Step& step, const Tensors& sums, const Tensor& count,
                                     const ebb::detail::Gate& gate, CallSite site) {
  std::vector<Tensor> updates = step.update(sums, gate);
  for (const Tensor& sum : sums) updates.push_back(ebb::detail::clear_if(sum, gate.ready, site));
  updates.push_back(ebb::detail::clear_if(count, gate.ready, site));
  return updates;
}

}  // namespace

Accumulator::Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options)
    : optimizer_(optimizer), options_(options) {
  if (options.samples < 1)
    throw Error("[accumulator] samples = " + std::to_string(options.samples) + " is below 1");
}

Tensor Accumulator::minimize(const Tensor& loss, const Parameters& parameters,
                             const Tensor& samples, const char* file, unsigned line) const {
  const CallSite site{file, line};
  Targets below = parameters_below(loss, parameters, "minimize", site);
  std::vector<SlotRequest> slots = slots_for(below);
  Step step(optimizer_, parameters, std::move(below), std::move(slots), site);
  const Tensors gradients = step.gradients_of(loss);
  step.prepare();

  // Whether an update is due must be known before anything is written, and takes memory to know: so
  // eager counts in a copy first. A graph has all its memory before it starts.
  const std::size_t targets = step.targets().size();
  Tensor count = step.further(targets);
  const Tensor counted =
      ebb::detail::add_count(loss.is_symbolic() ? count : copy({count, file, line}), samples, site);
  const ebb::detail::Gate gate{ebb::detail::at_least(counted, options_.samples, site), counted};

  step.begin_writing();
  Tensors sums;
  for (std::size_t i = 0; i < targets; ++i)
    sums.push_back(ebb::detail::accumulate(step.further(i), gradients[i], samples, site));
  count = loss.is_symbolic() ? counted : assign({count, file, line}, counted);
  const std::vector<Tensor> updates = update_and_clear(step, sums, count, gate, site);
  return loss.is_symbolic() ? with_all_updates(loss, updates, site) : loss.detach();
}

Tensor Accumulator::flush(const Parameters& parameters, const char* file, unsigned line) const {
  const CallSite site{file, line};
  Targets accumulated;
  for (const Parameters::Entry& entry : parameters.entries())
    if (parameters.contains(entry.name + kSum)) accumulated.push_back(&entry);
  if (accumulated.empty())
    throw Error(ebb::detail::message(
        "flush", "nothing has been accumulated for these parameters; minimize() does that", site));
  std::vector<SlotRequest> slots = slots_for(accumulated);
  Step step(optimizer_, parameters, std::move(accumulated), std::move(slots), site);
  step.prepare();

  const std::size_t targets = step.targets().size();
  const Tensor& count = step.further(targets);
  const Tensor applied = copy({count, file, line});
  const ebb::detail::Gate gate{ebb::detail::at_least(applied, 1, site), applied};
  Tensors sums;
  for (std::size_t i = 0; i < targets; ++i) sums.push_back(step.further(i));
  const std::vector<Tensor> updates = update_and_clear(step, sums, count, gate, site);
  return parameters.is_symbolic() ? with_all_updates(applied, updates, site) : applied;
}

}  // namespace ebb::optim
