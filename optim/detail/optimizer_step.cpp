#include "ebb/optim/detail/optimizer_step.h"

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/interned.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/kernels/clip.h"

namespace ebb::optim {

namespace {

// While compile() traces: the tensor as one of its graph's.
Tensor traced(const Tensor& tensor) {
  ebb::detail::Trace* const trace = ebb::detail::tape_mode().trace;
  return trace ? trace->symbolic(tensor, "optimizer", CallSite::here()) : tensor;
}

// The gradient without its history: it has one where it was computed for higher orders.
Tensor without_history(const Tensor& gradient) {
  const bool has_one = !gradient.is_symbolic() && gradient.requires_grad();
  return has_one ? gradient.detach() : gradient;
}

// Writes the scale that clips gradients to a norm into the first element of `work`, which is
// updated in place, and the norm into the second.
Tensor clip_scale(const Tensor& work, const Gate& gate, double limit,
                  std::span<const Tensor> gradients) {
  std::vector<Input> inputs = {work};
  if (gate.defined()) inputs.insert(inputs.end(), {gate.ready, gate.count});
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const ClipAttributes attributes{.limit = limit, .gated = gate.defined()};
  return apply_one(clip_scale_op, inputs, attributes, CallSite::here());
}

// Prefix of an optimizer's slot names: its scope, its rule and its own name, "head.adam:slow".
std::string key_of(const Optimizer& optimizer, const Parameters& parameters) {
  std::string key = parameters.prefix() + optimizer.rule().name();
  if (!optimizer.name().empty()) key += ':' + optimizer.name();
  return key;
}

// The world whose ranks update shares, if one does.
std::optional<distributed::World> sharding_world(const Optimizer& optimizer,
                                                 const Parameters& parameters) {
  const auto shards = [](const std::optional<distributed::World>& world) {
    return world && world->sharding() != distributed::Sharding::none;
  };
  const std::optional<distributed::World>& world = optimizer.world();
  if (!shards(world) && !shards(parameters.world())) return {};
  if (!(world == parameters.world()))
    refuse("optimizer",
           "only one of optimizer and parameters has the world that shards state; give it to both: "
           "Parameters(device, seed, {.world = world})");
  if (!optimizer.rule().is_elementwise())
    refuse(optimizer.rule().name(),
           "a world with .sharding updates parameters by shares, which this rule does not say it "
           "can (Rule::is_elementwise)");
  return world;
}

// Counts of in-place updates of the parameter and its slots.
std::vector<std::uint32_t> versions_of(const Tensor& parameter, std::span<const Tensor> slots) {
  std::vector<std::uint32_t> versions;
  const auto add = [&](const Tensor& tensor) {
    const Tensor known = traced(tensor);
    versions.push_back(known.is_symbolic() ? ebb::detail::newest_version(ebb::detail::root_of(
                                                 ebb::detail::source_of(known)))
                                           : known.impl()->storage->version());
  };
  add(parameter);
  for (const Tensor& slot : slots) add(slot);
  return versions;
}

}  // namespace

Tensor value_before_step(const Tensor& loss) {
  const bool is_state =
      loss.is_symbolic() ? ebb::detail::is_state(ebb::detail::root_of(ebb::detail::source_of(loss)))
                         : loss.impl()->storage->is_state();
  const Tensor value = is_state ? copy(loss) : loss;
  return value.is_symbolic() && !ebb::detail::tape_mode().trace ? value : value.detach();
}

void fail_for_frozen(const Tensor& loss) {
  refuse("minimize", "every given parameter that the loss, " + loss.to_string() +
                         ", depends on is frozen by set_trainable(false)");
}

Targets trained_below(const Tensor& loss, const Parameters& parameters, const char* what,
                      NodesBelow& below) {
  if (!loss.defined()) refuse(what, "of a tensor that holds nothing");
  ebb::detail::require_own(parameters, "optimizer");
  const bool is_traced = ebb::detail::tape_mode().trace && loss.is_symbolic();
  if (!is_traced && loss.is_symbolic() != parameters.is_symbolic())
    refuse(what, std::string("the loss is ") + loss.to_string() + ", but the parameters " +
                     (parameters.is_symbolic() ? "belong to a graph" : "are concrete"));
  if (below.empty()) below = ebb::detail::nodes_below(loss);
  const std::vector<Parameters::Entry>& entries = parameters.entries();
  if (entries.empty()) ebb::detail::require_any(parameters, what);
  Targets targets;
  bool any_frozen = false, all_frozen = !entries.empty();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_trained = parameters.is_trainable(entries[i]);
    if (is_trained) all_frozen = false;
    if (!below.contains(traced(entries[i].tensor).impl()->node.get())) continue;
    if (is_trained)
      targets.push_back(i);
    else
      any_frozen = true;
  }
  if (targets.empty() && loss.impl()->lost_history)
    ebb::detail::refuse_lost_history(what, ebb::detail::entry());
  if (targets.empty() && !any_frozen && !all_frozen)
    refuse(what, "the loss, " + loss.to_string() + ", depends on none of the " +
                     std::to_string(entries.size()) + " parameters" +
                     (parameters.prefix().empty()
                          ? ""
                          : " whose names begin with \"" + parameters.prefix() + '"') +
                     " (was it computed under NoGrad, or differentiated already?)");
  return targets;
}

const std::optional<distributed::World>& world_of(const std::vector<ParameterGroup>& groups,
                                                  const char* what) {
  const std::optional<distributed::World>& world = groups.front().optimizer.world();
  for (const ParameterGroup& group : groups)
    if (!(group.optimizer.world() == world))
      refuse(what, "the optimizers of the groups average over different worlds");
  return world;
}

void require_unseen(const Parameters::Entry& entry, std::unordered_set<const Node*>& seen) {
  if (!seen.insert(entry.tensor.impl()->node.get()).second)
    refuse("minimize", "'" + entry.name + "' is in two groups");
}

Tensor with_all_updates(Tensor value, std::span<const Tensor> updates) {
  if (!value.is_symbolic() || updates.empty()) return value;
  const ebb::detail::TapeModeScope no_history(ebb::detail::without_history());
  return ebb::detail::with_updates(value, updates);
}

// The storage, or in a graph the node that first made the memory: skips views and updates in place.
const void* WrittenMemory::memory_of(const Tensor& tensor) noexcept {
  const ebb::detail::TensorImpl& impl = *tensor.impl();
  if (impl.storage) return impl.storage.get();
  const Node* node = impl.node.get();
  while (node && (node->op->view || !node->op->updates.empty()))
    node = node->inputs[0].producer.get();
  const bool is_captured =
      node && node->op->is_source && node->extra && node->extra->tensor.defined();
  return is_captured ? static_cast<const void*>(node->extra->tensor.impl()->storage.get()) : node;
}

bool WrittenMemory::same(const Tensor& a, const Tensor& b) noexcept {
  const ebb::detail::TensorImpl &x = *a.impl(), &y = *b.impl();
  if (x.storage || y.storage) return x.storage.get() == y.storage.get() && x.offset == y.offset;
  return x.node.get() == y.node.get() && x.output == y.output;
}

std::string OptimizerStep::sum_name(const Optimizer& optimizer, const Parameters& parameters) {
  return key_of(optimizer, parameters) + ".accumulated";
}

OptimizerStep::OptimizerStep(const Optimizer& optimizer, const Parameters& parameters,
                             Targets targets, std::optional<DType> sums)
    : optimizer_(optimizer),
      parameters_(parameters),
      entries_(parameters.entries()),
      targets_(std::move(targets)),
      fused_(dynamic_cast<const FusedRule*>(&optimizer.rule())),
      shards_(sharding_world(optimizer, parameters)),
      slots_before_(parameters.slot_count()) {
  const std::string key = key_of(optimizer, parameters);
  const std::span<const char* const> slots = optimizer.rule().slots();
  std::vector<SlotBeside> beside;
  for (std::size_t i = 0; i < slots.size(); ++i)
    beside.push_back({key + '.' + slots[i], optimizer.rule().slot_dtype(i, parameters.dtype())});
  for (const SlotBeside& slot : beside) require_state(optimizer.rule().name(), slot.dtype, fused_);
  if (sums) require_state("accumulator", *sums, true);
  std::vector<SlotRequest> counts = {{key + "/step", {DType::i64, {}}}};
  if (optimizer.clip().global_norm > 0)
    counts.push_back({key + "/gradient_norm", {DType::f64, {}}});
  if (sums) {
    beside.push_back({sum_name(optimizer, parameters), *sums});
    counts.push_back({key + "/samples", {DType::i64, {}}});
  }
  per_target_ = beside.size();
  slots_ = parameters.find_or_make_slots({targets_, beside}, counts);
}

// Refuses a bad dtype before anything is made. The update kernels refuse it too, but late.
void OptimizerStep::require_state(const char* what, DType state, bool in_kernel) const {
  const DType parameter = parameters_.dtype();
  if (is_half(state) || (in_kernel && is_half(parameter) && state != DType::f32))
    refuse(what, std::string("keeps state of ") + ebb::name(state) + " beside parameters of " +
                     ebb::name(parameter) + ": it must be f32" +
                     (is_half(parameter) ? "" : " or f64"));
}

OptimizerStep::~OptimizerStep() {
  if (std::uncaught_exceptions() <= exceptions_) return;
  slots_.clear();
  parameters_.drop_slots_after(slots_before_);
}

Tensor OptimizerStep::parameter(std::size_t i) const {
  return ebb::detail::stored(entries_[targets_[i]].tensor);
}

Tensor OptimizerStep::own(std::size_t i) const {
  const bool is_whole = shards_ && shards_->sharding() < distributed::Sharding::parameters;
  return is_whole ? ebb::detail::share(parameter(i), *shards_) : parameter(i);
}

Tensor OptimizerStep::own(const Tensor& gradient) const {
  const bool is_whole = shards_ && shards_->sharding() == distributed::Sharding::optimizer_state;
  return is_whole ? ebb::detail::share(gradient, *shards_) : gradient;
}

// The norm of all is that of the norms of shares. Every rank adds up the same ones in one order.
Tensor OptimizerStep::scale_of(const Gate& gate, double limit, std::span<const Tensor> gradients) {
  const Tensor scale = clip_scale(clip_work_, gate, limit, gradients);
  if (!shards_ || shards_->sharding() < distributed::Sharding::gradients) return scale;
  assign(slice(clip_norms_, shards_->rank(), shards_->rank() + 1), slice(scale, 1, 2));
  const Tensor norms = ebb::detail::end_gather(
      ebb::detail::begin_gather(clip_norms_, *shards_, "norms of gradients"), *shards_);
  return clip_scale(scale, {}, limit, {&norms, 1});
}

void OptimizerStep::prepare(Gate gate, const std::function<Tensor(std::size_t)>& gradient) {
  gate_ = std::move(gate);
  if (optimizer_.clip().by_norm())
    clip_work_ = broadcast_to(cast(count_of_steps(), DType::f64), Shape({kClipNumbers}));
  if (optimizer_.clip().by_norm() && shards_)
    clip_norms_ = broadcast_to(cast(count_of_steps(), DType::f64), Shape({shards_->size()}));
  rate_ = optimizer_.learning_rate().after(count_of_steps());
  if (!parameters_.is_symbolic() && !ebb::detail::tape_mode().trace &&
      (rate_.is_symbolic() || !(rate_.device() == parameters_.device())))
    refuse("learning rate", "is " + rate_.to_string() + ", but the parameters are on " +
                                parameters_.device().name());
  WrittenMemory written;
  for (std::size_t i = 0; i < size(); ++i) written.add(parameter(i));
  if (written.holds(rate_)) rate_ = copy(rate_);
  if (!fused_) return apply_rule(gradient);
  for (const std::size_t target : targets_) decays_.push_back(fused_->decays(entries_[target]));
}

void OptimizerStep::check(const RuleResult& result, const Tensor& target, std::size_t i) const {
  const Parameters::Entry& entry = entries_[targets_[i]];
  const auto refuse_result = [&](const std::string& text) {
    refuse(optimizer_.rule().name(), "update() gives " + text);
  };
  const auto require_like = [&](const Tensor& like, DType dtype, const Tensor& value,
                                const std::string& what) {
    if (!value.defined()) return;
    if (value.dtype() != dtype || !(value.shape() == like.shape()) ||
        (!ebb::detail::tape_mode().trace &&
         (value.is_symbolic() != like.is_symbolic() ||
          (!value.is_symbolic() && !(value.device() == like.device())))))
      refuse_result(
          value.to_string() + " for " + what + " of '" + entry.name + "', which is " +
          like.to_string() +
          (dtype == like.dtype() ? "" : std::string(" and updated in ") + ebb::name(dtype)));
  };
  const std::span<const char* const> slots = optimizer_.rule().slots();
  if (result.slots.size() != slots.size())
    refuse_result(std::to_string(result.slots.size()) + " slots for '" + entry.name + "', not " +
                  std::to_string(slots.size()));
  require_like(target, state_dtype_of(target.dtype()), result.parameter, "the value");
  for (std::size_t s = 0; s < slots.size(); ++s)
    require_like(slots_of(i)[s], slots_of(i)[s].dtype(), result.slots[s],
                 std::string("the slot ") + slots[s]);
}

void OptimizerStep::apply_rule(const std::function<Tensor(std::size_t)>& gradient) {
  const ebb::detail::TapeModeScope no_grad(ebb::detail::without_history());
  WrittenMemory written;
  for (std::size_t i = 0; i < size(); ++i) {
    written.add(parameter(i));
    for (const Tensor& slot : slots_of(i)) written.add(slot);
  }
  const auto add = [&](const Tensor& target, const Tensor& value) {
    if (!value.defined() || WrittenMemory::same(value, target)) return;
    new_values_.push_back({target, written.holds(value) ? copy(value) : value});
  };
  const Tensor step = cast(count_of_steps(), DType::f64) + 1;
  const DType computed = state_dtype_of(parameters_.dtype());
  const Tensor rate = cast(rate_, computed);
  Tensors all;  // gradients, if they are clipped together
  if (optimizer_.clip().global_norm > 0) {
    for (std::size_t i = 0; i < size(); ++i) all.push_back(without_history(gradient(i)));
    all = clipped(all);
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const Tensor target = own(i);
    const std::vector<std::uint32_t> before = versions_of(target, slots_of(i));
    const RuleResult result = optimizer_.rule().update(
        {.parameter = cast(target, computed),
         .gradient =
             cast(own(all.empty() ? clipped({without_history(gradient(i))})[0] : all[i]), computed),
         .slots = slots_of(i),
         .step = step,
         .rate = rate,
         .name = entries_[targets_[i]].name});
    if (versions_of(target, slots_of(i)) != before)
      refuse(optimizer_.rule().name(),
             "update() has written to the parameter '" + entries_[targets_[i]].name +
                 "' or one of its slots; it returns new values, and the optimizer writes them");
    check(result, target, i);
    if (result.parameter.defined()) add(target, cast(result.parameter, target.dtype()));
    for (std::size_t s = 0; s < result.slots.size(); ++s) add(slots_of(i)[s], result.slots[s]);
  }
}

Tensors OptimizerStep::clipped(const Tensors& gradients) {
  const Clip& clip = optimizer_.clip();
  if (clip.value > 0) return clip_by_value(gradients, clip.value);
  if (!clip.by_norm()) return gradients;
  clip_work_ = scale_of({}, std::max(clip.norm, clip.global_norm), gradients);
  const Tensor scale = select(clip_work_, 0, 0);
  Tensors results;
  for (const Tensor& gradient : gradients) {
    const DType computed = state_dtype_of(gradient.dtype());
    results.push_back(cast(gradient, computed) * cast(scale, computed));
  }
  return results;
}

std::vector<Tensor> OptimizerStep::queue(const Tensors& gradients) {
  // In eager an update of a leaf is not recorded, whatever its gradient's history.
  std::optional<ebb::detail::TapeModeScope> no_history;
  if (!parameters_.is_symbolic()) no_history.emplace(ebb::detail::without_history());
  const Clip& clip = optimizer_.clip();
  if (fused_ && clip.global_norm > 0) clip_work_ = scale_of(gate_, clip.global_norm, gradients);
  if (clip.global_norm > 0)
    new_values_.push_back({gradient_norm(), reshape(slice(clip_work_, 1, 2), {})});
  std::vector<Tensor> updates;
  updates.reserve(1 + 2 * size() + new_values_.size());
  updates.push_back(ebb::detail::increment(count_of_steps(), 1, gate_.ready));
  for (const bool decays : {true, false})  // a GPU merges neighbours of one kind
    for (std::size_t i = 0; fused_ && i < size(); ++i) {
      if (decays_[i] != decays) continue;
      if (clip.norm > 0) clip_work_ = scale_of(gate_, clip.norm, {&gradients[i], 1});
      updates.push_back(fused_->update_in_place({.parameter = own(i),
                                                 .gradient = own(gradients[i]),
                                                 .slots = slots_of(i),
                                                 .step = updates[0],
                                                 .rate = rate_,
                                                 .scale = clip_work_,
                                                 .gate = gate_,
                                                 .decays = decays,
                                                 .clip_value = clip.value}));
    }
  for (const auto& [target, value] : new_values_)
    updates.push_back(gate_.defined() ? ebb::detail::assign_if(target, value, gate_.ready)
                                      : assign(target, value));
  if (!shards_ || shards_->sharding() == distributed::Sharding::parameters) return updates;
  const std::size_t first = updates.size();
  for (std::size_t i = 0; i < size(); ++i)
    updates.push_back(ebb::detail::begin_gather(
        parameter(i), *shards_,
        ebb::detail::interned("the parameter '" + entries_[targets_[i]].name + "'")));
  for (std::size_t i = 0; i < size(); ++i)
    updates[first + i] = ebb::detail::end_gather(updates[first + i], *shards_);
  return updates;
}

}  // namespace ebb::optim
