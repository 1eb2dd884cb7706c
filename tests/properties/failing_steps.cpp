#include "ebb/tests/properties/failing_steps.h"

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/random/random.h"
#include "ebb/tests/bytes.h"

namespace ebb::tests {
namespace {

// Appends the figures. A device's include its sessions' pools.
void add_figures(HeldMemory& held, const memory::Stats& stats) {
  held.bytes.insert(held.bytes.end(), {stats.requested.current, stats.allocated.current,
                                       stats.reserved.current, stats.allocations});
  for (const memory::Figure& figure : stats.by_category) held.bytes.push_back(figure.current);
}

}  // namespace

FailingTraining::FailingTraining(const BundledModel& model, Method method, Way way,
                                 const Device& device)
    : model_(model),
      way_(way),
      device_(device),
      mode_(way != Way::eager, DType::f32, Seed{7}, {.device = device, .seed = Seed{3}}),
      loss_(model.make(mode_.parameters)),
      step_(mode_.function(
          {{model.input.dtype, with_rows(model.input, -1)},
           {model.target.dtype, with_rows(model.target, -1)}},
          [this, method](const Tensors& in) -> Tensors {
            return {train(method, loss_(in[0], in[1]), in[0], mode_.parameters)};
          },
          way == Way::prepared)) {
  set_seed(Seed{3});
  if (way != Way::eager) mode_.session();  // initialized
}

std::optional<float> FailingTraining::step(std::int64_t rows) {
  const Tensors batch = {batch_of(model_.input, rows, device_),
                         batch_of(model_.target, rows, device_)};
  const auto make = [&] { return step_(batch)[0]; };
  const Tensor loss = way_ == Way::eager ? attempt(make) : make();
  if (device_.is_simulated()) return {};
  return loss.item<float>();
}

TrainingState FailingTraining::state() {
  const Parameters& p = mode_.parameters;
  TrainingState state{.random_key = detail::generator().key,
                      .random_counter = detail::generator().counter};
  const bool has_slots = way_ == Way::eager || mode_.session().memory().optimizer_state_bytes > 0;
  for (const auto* list : {&p.entries(), &p.states(), &p.slots()})
    for (const auto& [name, tensor] : *list) {
      if (list == &p.slots() && !has_slots) continue;  // reading them makes them
      const bool has_gradient = way_ == Way::eager && tensor.grad().defined();
      state.names.push_back(name + (has_gradient ? " and its gradient" : ""));
      const Tensor value = mode_[name];
      if (!device_.is_simulated()) state.bits.push_back(bytes_of(value));
    }
  return state;
}

HeldMemory FailingTraining::held() {
  device_.runtime().allocator().release_cached();
  HeldMemory held;
  add_figures(held, device_.runtime().allocator().stats());
  if (way_ == Way::eager) return held;
  const Session& session = mode_.session();
  add_figures(held, session.stats());
  const memory::Breakdown of = session.memory();
  held.bytes.insert(held.bytes.end(),
                    {of.parameter_bytes, of.optimizer_state_bytes, of.arena_bytes});
  held.plans = session.plans();
  return held;
}

}  // namespace ebb::tests
