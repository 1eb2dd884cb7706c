#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

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
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// An update with so many slots: what it is given, and what stands at the end of its inputs.
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
  // f(i, g) for each element, where there is anything to do.
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

// Kingma & Ba 2015, algorithm 1; with decoupled decay Loshchilov & Hutter 2019, algorithm 2.
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

// In the other form than the kernel's: the mean of all values, weighted by powers of the decay.
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

void add_optim_references(std::vector<Reference>& references) {
  references.push_back({&optim::sgd_update_op, sgd});
  references.push_back({&optim::sgd_momentum_update_op, sgd});
  references.push_back({&optim::adam_update_op, adam});
  const auto add_rmsprop = [&](const OpDef& op, bool centered, bool momentum) {
    references.push_back(
        {&op, [=](const Application& a) { return rmsprop(a, centered, momentum); }});
  };
  add_rmsprop(optim::rmsprop_update_op, false, false);
  add_rmsprop(optim::rmsprop_centered_update_op, true, false);
  add_rmsprop(optim::rmsprop_momentum_update_op, false, true);
  add_rmsprop(optim::rmsprop_centered_momentum_update_op, true, true);
  references.push_back({&optim::adagrad_update_op, adagrad});
  references.push_back({&optim::lion_update_op, lion});
  references.push_back({&optim::clip_scale_op, clip_scale});
  references.push_back({&optim::average_update_op, average});
  references.push_back({&optim::schedule_op, schedule});
  references.push_back({&optim::accumulate_op, accumulate});
}

}  // namespace ebb::tests
