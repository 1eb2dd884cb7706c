// Operators of optimizers: with parameter, state and gradient of one dtype and of two, gated or
// not.
#include "ebb/core/tensor/apply.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/kernels/adam.h"
#include "ebb/optim/kernels/sgd.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using std::optional;

const SampleInput kRate{{}, Values::rate}, kCount{{}, Values::count}, kReady{{}, Values::ready},
    kNotReady{{}, Values::not_ready};

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

// What a gate is in a sample: none, or `ready`.
struct Gated {
  std::string how;
  std::int32_t gated = 0;
  std::vector<SampleInput> inputs = {};

  std::vector<SampleInput> after(std::vector<SampleInput> all) const {
    all.insert(all.end(), inputs.begin(), inputs.end());
    return all;
  }
};

// The dtypes of state and gradient where they are not the parameter's.
struct Mixed {
  std::string how;
  optional<DType> state = {}, gradient = {};
};

void add_updates(std::vector<Sample>& samples, const Gated& gate, const Mixed& mixed) {
  const std::string how = mixed.how + gate.how;
  const SampleInput p = array({}), state = array(mixed.state), g = array(mixed.gradient);
  const SampleInput square = array(mixed.state, Values::positive);
  samples.push_back(sample(optim::sgd_update_op, how, gate.after({p, g, kRate}),
                           optim::SgdAttributes{.weight_decay = 0.1, .gated = gate.gated}));
  for (const int nesterov : {0, 1})
    samples.push_back(
        sample(optim::sgd_momentum_update_op, (nesterov ? ", Nesterov" : ", momentum") + how,
               gate.after({p, state, g, kRate}),
               optim::SgdAttributes{.momentum = 0.9, .nesterov = nesterov, .gated = gate.gated}));
  for (const int decoupled : {0, 1})
    samples.push_back(sample(
        optim::adam_update_op, (decoupled ? ", AdamW" : "") + how,
        gate.after({p, state, square, g, kCount, kRate}),
        optim::AdamAttributes{.weight_decay = 0.1, .decoupled = decoupled, .gated = gate.gated}));
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
    add_updates(samples, {", ready", 1, {kReady, kCount}}, mixed);
    add_updates(samples, {", not ready", 1, {kNotReady, kCount}}, mixed);
    samples.push_back(sample(optim::accumulate_op, mixed.how,
                             {array(mixed.state), array(mixed.gradient), kCount}, {}));
  }
  samples.push_back(
      sample(optim::schedule_op, ", cosine", {kCount},
             optim::ScheduleAttributes{
                 .kind = optim::ScheduleAttributes::cosine, .warm_up = 3, .steps = 20}));
}

}  // namespace ebb::tests
