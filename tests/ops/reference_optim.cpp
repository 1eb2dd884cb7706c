#include <cmath>
#include <numbers>

#include "ebb/optim/accumulator.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/kernels/adam.h"
#include "ebb/optim/kernels/sgd.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// What stands behind the ungated inputs: whether to update, and what to divide the gradient by.
struct Conditions {
  Conditions(const Application& a, bool gated, std::size_t first)
      : open(!gated || a[first][0] != 0), count(gated ? a[first + 1][0] : 1) {}
  bool open;
  double count;
};

Arrays sgd(const Application& a) {
  const auto& attributes = a.attribute<optim::SgdAttributes>();
  const bool momentum = attributes.momentum > 0;
  const std::size_t gradient = momentum ? 2 : 1;
  const Array &g = a[gradient], &rate = a[gradient + 1];
  const Conditions gate(a, attributes.gated != 0, gradient + 2);
  Array p = a[0], v = momentum ? a[1] : Array(a[0].shape);
  for (std::int64_t i = 0; gate.open && i < p.elements(); ++i) {
    const double d = g[i] / gate.count + attributes.weight_decay * p[i];
    v[i] = attributes.momentum * v[i] + d;
    p[i] -= rate[0] * (attributes.nesterov ? d + attributes.momentum * v[i] : v[i]);
  }
  return momentum ? Arrays{p, v} : Arrays{p};
}

// Kingma & Ba 2015, algorithm 1; with decoupled decay Loshchilov & Hutter 2019, algorithm 2.
Arrays adam(const Application& a) {
  const auto& attributes = a.attribute<optim::AdamAttributes>();
  const Conditions gate(a, attributes.gated != 0, 6);
  const double step = a[4][0], rate = a[5][0];
  Array p = a[0], m = a[1], v = a[2];
  for (std::int64_t i = 0; gate.open && i < p.elements(); ++i) {
    double g = a[3][i] / gate.count;
    if (attributes.decoupled)
      p[i] -= rate * attributes.weight_decay * p[i];
    else
      g += attributes.weight_decay * p[i];
    m[i] = attributes.beta1 * m[i] + (1 - attributes.beta1) * g;
    v[i] = attributes.beta2 * v[i] + (1 - attributes.beta2) * g * g;
    const double mean = m[i] / (1 - std::pow(attributes.beta1, step));
    const double square = v[i] / (1 - std::pow(attributes.beta2, step));
    p[i] -= rate * mean / (std::sqrt(square) + attributes.epsilon);
  }
  return {p, m, v};
}

Arrays schedule(const Application& a) {
  const auto& s = a.attribute<optim::ScheduleAttributes>();
  const double n = a[0][0] + 1, warm_up = static_cast<double>(s.warm_up),
               steps = static_cast<double>(s.steps);
  Array rate{Shape{}};
  if (s.kind == optim::ScheduleAttributes::constant)
    rate[0] = s.base;
  else if (n <= warm_up)
    rate[0] = s.base * n / warm_up;
  else if (n >= steps)
    rate[0] = s.end;
  else
    rate[0] = s.end + (s.base - s.end) / 2 *
                          (1 + std::cos(std::numbers::pi * (n - warm_up) / (steps - warm_up)));
  return {rate};
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
  references.push_back({&optim::schedule_op, schedule});
  references.push_back({&optim::accumulate_op, accumulate});
}

}  // namespace ebb::tests
