// Operators of optimizers: parameter, state and gradient of one dtype or two; gated or not; clipped
// or not.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "ebb/core/tensor/apply.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/kernels/clip.h"
#include "ebb/optim/kernels/learning_rate.h"
#include "ebb/optim/kernels/rules.h"
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
  Sample sample = sample_of(op, "", std::move(inputs), applying(op, attributes), kNoGradient);
  sample.name += how;
  return sample;
}

// Additional inputs of an update: a gate, a scale.
struct Given {
  std::string how;
  std::vector<SampleInput> inputs = {};
  double clip_value = 0;
};

// Dtypes of state and gradient where they differ from the parameter's.
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
  // The centered variance may be almost 0. A larger epsilon keeps the quotient within 16 bits.
  RmspropAttributes centered = rmsprop;
  centered.epsilon = 0.5;
  add(rmsprop_centered_update_op, ", centered", {positive, state}, centered);
  add(rmsprop_centered_momentum_update_op, ", centered, momentum", {positive, state, state},
      centered);
  add(adagrad_update_op, "", {positive},
      AdagradAttributes{.rate_decay = 0.1, .initial_sum = 0.5, .weight_decay = 0.1});
  add(lion_update_op, "", {state}, LionAttributes{.weight_decay = 0.1});
}

// Inputs of an update with `slots` slots: parameter, slots, gradient, step, rate, then gate, count
// and scale where given.
struct Update {
  Update(const Application& a, std::size_t slots, double clip_value)
      : gradient(a[1 + slots]), step(a[2 + slots][0]), rate(a[3 + slots][0]) {
    const std::size_t n = a.inputs.size(), more = n - slots - 4;
    const bool gated = more >= 2;
    const double count = gated ? a[n - more + 1][0] : 1, scale = more % 2 == 1 ? a[n - 1][0] : 1;
    open = !gated || a[n - more][0] != 0;
    for (double& g : gradient.values) {
      g = g / count * scale;
      if (clip_value > 0) g = std::min(std::max(g, -clip_value), clip_value);
    }
    for (std::size_t i = 0; i <= slots; ++i) x.push_back(a[i]);
  }
  // Calls f(i, g) for each element unless the gate is closed. Returns parameter and slots.
  Arrays each(const std::function<void(std::int64_t, double)>& f) {
    for (std::int64_t i = 0; open && i < gradient.elements(); ++i) f(i, gradient[i]);
    return x;
  }

  Array gradient;
  Arrays x;  // the parameter and its slots
  double step, rate;
  bool open = true;
};

Arrays sgd(const Application& a) {
  const auto& attributes = a.attribute<optim::SgdAttributes>();
  const bool momentum = attributes.momentum > 0;
  Update update(a, momentum ? 1 : 0, attributes.clip_value);
  return update.each([&](std::int64_t i, double g) {
    Array& p = update.x[0];
    g += attributes.weight_decay * p[i];
    if (momentum) {
      const double v = update.x[1][i] = attributes.momentum * update.x[1][i] + g;
      g = attributes.nesterov ? g + attributes.momentum * v : v;
    }
    p[i] -= update.rate * g;
  });
}

// Adam: Kingma & Ba 2015, algorithm 1; with decoupled decay Loshchilov & Hutter 2019, algorithm 2.
Arrays adam(const Application& a) {
  const auto& attributes = a.attribute<optim::AdamAttributes>();
  Update update(a, 2, attributes.clip_value);
  return update.each([&](std::int64_t i, double g) {
    Array &p = update.x[0], &m = update.x[1], &v = update.x[2];
    if (attributes.decoupled)
      p[i] -= update.rate * attributes.weight_decay * p[i];
    else
      g += attributes.weight_decay * p[i];
    m[i] = attributes.beta1 * m[i] + (1 - attributes.beta1) * g;
    v[i] = attributes.beta2 * v[i] + (1 - attributes.beta2) * g * g;
    const double mean = m[i] / (1 - std::pow(attributes.beta1, update.step));
    const double square = v[i] / (1 - std::pow(attributes.beta2, update.step));
    p[i] -= update.rate * mean / (std::sqrt(square) + attributes.epsilon);
  });
}

Arrays rmsprop(const Application& a, bool centered, bool momentum) {
  const auto& attributes = a.attribute<optim::RmspropAttributes>();
  const std::size_t slots = 1 + (centered ? 1u : 0u) + (momentum ? 1u : 0u);
  Update update(a, slots, attributes.clip_value);
  return update.each([&](std::int64_t i, double g) {
    Array &p = update.x[0], &v = update.x[1];
    g += attributes.weight_decay * p[i];
    v[i] += (1 - attributes.decay) * (g * g - v[i]);
    double variance = v[i];
    if (centered) {
      double& mean = update.x[2].values[static_cast<std::size_t>(i)];
      mean += (1 - attributes.decay) * (g - mean);
      variance = std::max(0.0, variance - mean * mean);
    }
    g /= std::sqrt(variance) + attributes.epsilon;
    if (momentum) g = update.x[slots][i] = attributes.momentum * update.x[slots][i] + g;
    p[i] -= update.rate * g;
  });
}

Arrays adagrad(const Application& a) {
  const auto& attributes = a.attribute<optim::AdagradAttributes>();
  Update update(a, 1, attributes.clip_value);
  const double rate = update.rate / (1 + (update.step - 1) * attributes.rate_decay);
  return update.each([&](std::int64_t i, double g) {
    Array &p = update.x[0], &sum = update.x[1];
    g += attributes.weight_decay * p[i];
    sum[i] += g * g;
    p[i] -= rate * g / (std::sqrt(attributes.initial_sum + sum[i]) + attributes.epsilon);
  });
}

Arrays lion(const Application& a) {
  const auto& attributes = a.attribute<optim::LionAttributes>();
  Update update(a, 1, attributes.clip_value);
  return update.each([&](std::int64_t i, double g) {
    Array &p = update.x[0], &m = update.x[1];
    const double u = attributes.beta1 * m[i] + (1 - attributes.beta1) * g;
    p[i] -= update.rate * ((u > 0 ? 1 : u < 0 ? -1 : 0) + attributes.weight_decay * p[i]);
    m[i] = attributes.beta2 * m[i] + (1 - attributes.beta2) * g;
  });
}

Arrays schedule(const Application& a) {
  using Schedule = optim::ScheduleAttributes;
  const auto& s = a.attribute<Schedule>();
  const double n = a[0][0] + 1, warm_up = static_cast<double>(s.warm_up),
               steps = static_cast<double>(s.steps);
  const double past = n - std::max(warm_up, 1.0), left = (steps - n) / (steps - warm_up);
  const auto rate = [&]() -> double {
    if (n <= warm_up) return s.base * n / warm_up;
    switch (s.kind) {
      case Schedule::constant:
        return s.base;
      case Schedule::exponential:
        return s.base * std::exp(std::log(s.shape) * past / steps);
      case Schedule::staircase:
        return s.base * std::pow(s.shape, std::floor(past / steps));
      case Schedule::polynomial:
        return n >= steps ? s.end : s.end + (s.base - s.end) * std::pow(left, s.shape);
      case Schedule::cosine:
        return n >= steps ? s.end
                          : s.end + (s.base - s.end) / 2 * (1 - std::cos(std::numbers::pi * left));
    }
    return NAN;
  };
  Array result{Shape{}};
  result[0] = rate();
  return {result};
}

Arrays clip_scale(const Application& a) {
  const auto& attributes = a.attribute<optim::ClipAttributes>();
  const bool gated = attributes.gated != 0;
  if (gated && a[1][0] == 0) return {a[0]};
  double squares = 0;
  for (std::size_t i = gated ? 3 : 1; i < a.inputs.size(); ++i)
    for (const double g : a[i].values) squares += g * g;
  const double norm = std::sqrt(squares) / (gated ? a[2][0] : 1);
  Array work(a[0].shape);
  work[0] = std::min(1.0, attributes.limit / norm);
  work[1] = norm;
  return {work};
}

// Unlike the kernel, written as the mean of all values weighted by powers of the decay.
Arrays average(const Application& a) {
  const double count = a[2][0], decay = a[3][0];
  const bool corrected = a.attribute<optim::AverageAttributes>().bias_corrected != 0;
  Array mean = a[0];
  for (std::int64_t i = 0; i < mean.elements(); ++i) {
    const double before = 1 - std::pow(decay, count - 1), now = 1 - std::pow(decay, count);
    mean[i] = corrected ? (decay * before * mean[i] + (1 - decay) * a[1][i]) / now
                        : decay * mean[i] + (1 - decay) * a[1][i];
    if (count == 1) mean[i] = a[1][i];
  }
  return {mean};
}

Arrays accumulate(const Application& a) {
  Array sum = a[0];
  for (std::int64_t i = 0; i < sum.elements(); ++i) sum[i] += a[2][0] * a[1][i];
  return {sum};
}

}  // namespace

void optim_family(std::vector<Sample>& samples, References& references, DType dtype) {
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
    samples.back().any_shape = true;  // gradients have any shape
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

  references.add(optim::sgd_update_op, sgd);
  references.add(optim::sgd_momentum_update_op, sgd);
  references.add(optim::adam_update_op, adam);
  const auto add_rmsprop = [&](const OpDef& op, bool centered, bool momentum) {
    references.add(op, [=](const Application& a) { return rmsprop(a, centered, momentum); });
  };
  add_rmsprop(optim::rmsprop_update_op, false, false);
  add_rmsprop(optim::rmsprop_centered_update_op, true, false);
  add_rmsprop(optim::rmsprop_momentum_update_op, false, true);
  add_rmsprop(optim::rmsprop_centered_momentum_update_op, true, true);
  references.add(optim::adagrad_update_op, adagrad);
  references.add(optim::lion_update_op, lion);
  references.add(optim::clip_scale_op, clip_scale);
  references.add(optim::average_update_op, average);
  references.add(optim::schedule_op, schedule);
  references.add(optim::accumulate_op, accumulate);
}

}  // namespace ebb::tests
