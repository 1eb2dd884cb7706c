#include "ebb/optim/average.h"

#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/detail/update_rule.h"
#include "ebb/optim/kernels/rules.h"
#include "ebb/optim/learning_rate.h"

namespace ebb::optim {

using ebb::detail::LaunchRow;

MovingAverage::MovingAverage(const Parameters& parameters, const AverageOptions& options,
                             CallSite site)
    : parameters_(parameters), options_(options) {
  const ebb::detail::CallScope at(site);
  require_fraction("moving_average", "decay", options.decay);
  const std::vector<Parameters::Entry> entries = parameters.entries();
  if (entries.empty()) refuse("moving_average", "there are no parameters; make the model first");
  updates_ = parameters.state(options.name + ".updates", {}, initializers::zeros(), DType::i64);
  for (const auto& [name, parameter] : entries) {
    const std::string below = name.substr(parameters.prefix().size());
    pairs_.push_back({below, parameter,
                      parameters.state(options.name + '.' + below, parameter.shape(),
                                       initializers::zeros(), state_dtype_of(parameter.dtype()))});
  }
}

Tensor MovingAverage::update(CallSite site) const {
  const ebb::detail::CallScope at(site);
  const ebb::detail::TapeModeScope untracked(ebb::detail::without_history());
  const Tensor decay = LearningRate(options_.decay).after(updates_);
  const std::vector<Tensor> updates = commit([&] {
    std::vector<Tensor> all = {ebb::detail::increment(updates_, 1)};
    for (const Pair& pair : pairs_)
      all.push_back(apply_one(average_update_op, {pair.average, pair.parameter, all[0], decay},
                              AverageAttributes{.bias_corrected = options_.bias_corrected},
                              CallSite::here()));
    return all;
  });
  return with_all_updates(updates[0], std::span(updates).subspan(1));
}

Tensor MovingAverage::swap(CallSite site) const {
  const ebb::detail::CallScope at(site);
  if (is_half(parameters_.dtype()))
    refuse("swap", std::string("would round the averages to ") + name(parameters_.dtype()) +
                       "; copy_to() the parameters of a second model");
  const ebb::detail::TapeModeScope untracked(ebb::detail::without_history());
  const Tensor ready = ebb::detail::at_least(updates_, 1);
  Tensors before;  // all memory first
  for (const Pair& pair : pairs_) before.push_back(copy(pair.parameter));
  std::vector<Tensor> updates;
  LaunchRow row;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const auto& [name, parameter, average] = pairs_[i];
    updates.push_back(ebb::detail::assign_if(parameter, average, ready));
    updates.push_back(ebb::detail::assign_if(average, before[i], ready));
  }
  row.flush();
  return with_all_updates(updates_, updates);
}

Tensor MovingAverage::copy_to(const Parameters& other, CallSite site) const {
  const ebb::detail::CallScope at(site);
  const ebb::detail::TapeModeScope untracked(ebb::detail::without_history());
  Tensors targets, values;
  for (const Pair& pair : pairs_) {
    targets.push_back(other[NameAt(pair.name, site)]);
    if (!(targets.back().shape() == pair.average.shape()))
      refuse("copy_to", "'" + other.prefix() + pair.name + "' is " + targets.back().to_string() +
                            ", but its average " + pair.average.to_string());
    values.push_back(cast(pair.average, targets.back().dtype()));
  }
  std::vector<Tensor> updates;
  LaunchRow row;
  for (std::size_t i = 0; i < targets.size(); ++i) updates.push_back(assign(targets[i], values[i]));
  row.flush();
  return with_all_updates(updates_, updates);
}

constinit const OpDef average_update_op{
    .name = "average_update",
    .infer =
        [](Inference& inference) {
          infer_sums(inference, "averages", "values");
          ebb::detail::require_scalar(inference, 2, DType::i64, "the count");
          ebb::detail::require_scalar(inference, 3, DType::f64, "the decay");
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::average_update},
    .cuda = {.run = cuda::average_update, .run_merged = cuda::average_update_merged}};

}  // namespace ebb::optim
