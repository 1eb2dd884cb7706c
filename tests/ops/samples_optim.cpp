// Operators of optimizers: with parameter, state and gradient of one dtype and of two, gated or
// not, as given or clipped.
#include "ebb/core/tensor/apply.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/adagrad.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/average.h"
#include "ebb/optim/clip.h"
#include "ebb/optim/kernels/clip.h"
#include "ebb/optim/kernels/rules.h"
#include "ebb/optim/lion.h"
#include "ebb/optim/rmsprop.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using std::optional;

const SampleInput kRate{{}, Values::rate}, kCount{{}, Values::count}, kReady{{}, Values::ready},
    kNotReady{{}, Values::not_ready}, kWork{{optim::kClipNumbers}, Values::any, DType::f64};

SampleInput array(optional<DType> dtype, Values values = Values::any) {
  return {{4, 3}, values, dtype};
}

Sample sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
              const Attributes& attributes) {
  return {.op = &op,
          .name = std::string(op.name) + how,
          .inputs = std::move(inputs),
          .call =
              [&op, attributes](const Tensors& in) {
                const std::vector<Input> given(in.begin(), in.end());
                return apply(op, given, attributes, {});
              },
          .order = 0};
}

// What else an update is given: a gate, a scale.
struct Given {
  std::string how;
  std::vector<SampleInput> inputs = {};
  double clip_value = 0;
};

// The dtypes of state and gradient where they are not the parameter's.
struct Mixed {
  std::string how;
  optional<DType> state = {}, gradient = {};
};

void add_updates(std::vector<Sample>& samples, const Given& given, const Mixed& mixed) {
  const SampleInput state = array(mixed.state), positive = array(mixed.state, Values::positive);
  const auto add = [&](const OpDef& op, const std::string& form,
                       const std::vector<SampleInput>& slots, auto attributes) {
    std::vector<SampleInput> inputs = {array({})};
    inputs.insert(inputs.end(), slots.begin(), slots.end());
    for (const SampleInput& input : {array(mixed.gradient), kCount, kRate}) inputs.push_back(input);
    inputs.insert(inputs.end(), given.inputs.begin(), given.inputs.end());
    attributes.clip_value = given.clip_value;
    samples.push_back(sample(op, form + mixed.how + given.how, std::move(inputs), attributes));
  };
  using namespace optim;
  add(sgd_update_op, "", {}, SgdAttributes{.weight_decay = 0.1});
  for (const int nesterov : {0, 1})
    add(sgd_momentum_update_op, nesterov ? ", Nesterov" : ", momentum", {state},
        SgdAttributes{.momentum = 0.9, .nesterov = nesterov});
  for (const int decoupled : {0, 1})
    add(adam_update_op, decoupled ? ", AdamW" : "", {state, positive},
        AdamAttributes{.weight_decay = 0.1, .decoupled = decoupled});
  const RmspropAttributes rmsprop{.decay = 0.9, .momentum = 0.8, .weight_decay = 0.1};
  add(rmsprop_update_op, "", {positive}, rmsprop);
  add(rmsprop_momentum_update_op, ", momentum", {positive, state}, rmsprop);
  // The variance may be next to nothing, by which no number of 16 bits is divided.
  RmspropAttributes centered = rmsprop;
  centered.epsilon = 0.5;
  add(rmsprop_centered_update_op, ", centered", {positive, state}, centered);
  add(rmsprop_centered_momentum_update_op, ", centered, momentum", {positive, state, state},
      centered);
  add(adagrad_update_op, "", {positive},
      AdagradAttributes{.rate_decay = 0.1, .initial_sum = 0.5, .weight_decay = 0.1});
  add(lion_update_op, "", {state}, LionAttributes{.weight_decay = 0.1});
}

}  // namespace

void add_optim_samples(std::vector<Sample>& samples, DType dtype) {
  std::vector<Mixed> mixtures = {{""},
                                 {", f64 state", DType::f64},
                                 {", f32 state", DType::f32},
                                 {", f64 gradient", {}, DType::f64},
                                 {", f32 gradient", {}, DType::f32},
                                 {", f64 state and gradient", DType::f64, DType::f64},
                                 {", f32 state and gradient", DType::f32, DType::f32}};
  if (is_half(dtype)) mixtures = {mixtures[2], mixtures[6]};
  for (const Mixed& mixed : mixtures) {
    add_updates(samples, {""}, mixed);
    add_updates(samples, {", ready", {kReady, kCount}}, mixed);
    add_updates(samples, {", not ready", {kNotReady, kCount}}, mixed);
    add_updates(samples, {", clipped", {kReady, kCount, kWork}, 0.2}, mixed);
    add_updates(samples, {", scaled", {kWork}}, mixed);
    samples.push_back(sample(optim::accumulate_op, mixed.how,
                             {array(mixed.state), array(mixed.gradient), kCount}, {}));
  }
  const auto add_clip = [&](const std::string& how, std::vector<SampleInput> inputs,
                            const optim::ClipAttributes& clip) {
    samples.push_back(sample(optim::clip_scale_op, how, std::move(inputs), clip));
    samples.back().any_shape = true;  // of gradients
  };
  for (const double limit : {0.5, 100.0}) {
    const std::string how = limit < 1 ? ", above the limit" : ", below it";
    const optim::ClipAttributes clip{.limit = limit}, gated{.limit = limit, .gated = 1};
    add_clip(how, {kWork, array({}), array(DType::f32)}, clip);
    add_clip(how + ", ready", {kWork, kReady, kCount, array({}), array(DType::f64)}, gated);
  }
  add_clip(", not ready", {kWork, kNotReady, kCount, array({})}, {.gated = 1});
  const DType wide = is_half(dtype) ? DType::f32 : dtype;
  for (const int corrected : {0, 1})
    samples.push_back(sample(optim::average_update_op, corrected ? ", corrected" : "",
                             {array(wide), array({}), kCount, kRate},
                             optim::AverageAttributes{.bias_corrected = corrected}));
  using Schedule = optim::ScheduleAttributes;
  const auto add_schedule = [&](const std::string& how, const Schedule& schedule) {
    samples.push_back(sample(optim::schedule_op, how, {kCount}, schedule));
  };
  for (const std::int64_t warm_up : {0, 3}) {
    const std::string how = warm_up == 0 ? "" : ", after a warm-up";
    add_schedule(", constant" + how, {.warm_up = 30 * warm_up});
    add_schedule(", cosine" + how, {.kind = Schedule::cosine, .warm_up = warm_up, .steps = 20});
    add_schedule(
        ", polynomial" + how,
        {.kind = Schedule::polynomial, .end = 1e-4, .shape = 1.5, .warm_up = warm_up, .steps = 20});
    add_schedule(", exponential" + how,
                 {.kind = Schedule::exponential, .shape = 0.5, .warm_up = warm_up, .steps = 4});
    add_schedule(", staircase" + how,
                 {.kind = Schedule::staircase, .shape = 0.5, .warm_up = warm_up, .steps = 2});
  }
}

}  // namespace ebb::tests
