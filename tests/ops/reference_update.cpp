#include <cmath>
#include <numbers>

#include "ebb/core/kernels/update.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// What stands behind the ungated inputs: whether to update, and what to divide the gradient by.
struct Gate {
  Gate(const Application& a, bool gated, std::size_t first)
      : open(!gated || a[first][0] != 0), count(gated ? a[first + 1][0] : 1) {}
  bool open;
  double count;
};

Arrays sgd(const Application& a) {
  const auto& attributes = a.attribute<SgdAttributes>();
  const bool momentum = attributes.momentum > 0;
  const std::size_t gradient = momentum ? 2 : 1;
  const Array &g = a[gradient], &rate = a[gradient + 1];
  const Gate gate(a, attributes.gated != 0, gradient + 2);
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
  const auto& attributes = a.attribute<AdamAttributes>();
  const Gate gate(a, attributes.gated != 0, 6);
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
  const auto& s = a.attribute<ScheduleAttributes>();
  const double n = a[0][0] + 1, warm_up = static_cast<double>(s.warm_up),
               steps = static_cast<double>(s.steps);
  Array rate{Shape{}};
  if (s.kind == ScheduleAttributes::constant)
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

// Each element of the first input from itself, that of the second, and what all of them share.
template <class Element>
Arrays updated(const Application& a, const Element& element) {
  Array x = a[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = element(x[i], i);
  return {x};
}

}  // namespace

void add_update_references(std::vector<Reference>& references) {
  references.push_back({&sgd_update_op, sgd});
  references.push_back({&sgd_momentum_update_op, sgd});
  references.push_back({&adam_update_op, adam});
  references.push_back({&schedule_op, schedule});
  references.push_back({&assign_op, [](const Application& a) {
                          return updated(a, [&](double, std::int64_t i) { return a[1][i]; });
                        }});
  references.push_back({&assign_if_op, [](const Application& a) {
                          return updated(
                              a, [&](double x, std::int64_t i) { return a[2][0] ? a[1][i] : x; });
                        }});
  references.push_back({&add_assign_op, [](const Application& a) {
                          return updated(a, [&](double x, std::int64_t i) { return x + a[1][i]; });
                        }});
  references.push_back({&accumulate_op, [](const Application& a) {
                          return updated(
                              a, [&](double x, std::int64_t i) { return x + a[2][0] * a[1][i]; });
                        }});
  references.push_back({&clear_if_op, [](const Application& a) {
                          return updated(a,
                                         [&](double x, std::int64_t) { return a[1][0] ? 0 : x; });
                        }});
  references.push_back({&add_count_op, [](const Application& a) {
                          return updated(a, [&](double n, std::int64_t) { return n + a[1][0]; });
                        }});
  references.push_back({&increment_op, [](const Application& a) {
                          const auto& attributes = a.attribute<CountAttributes>();
                          const bool open = !attributes.gated || a[1][0] != 0;
                          const double by = open ? static_cast<double>(attributes.value) : 0;
                          return updated(a, [&](double n, std::int64_t) { return n + by; });
                        }});
  references.push_back({&at_least_op, [](const Application& a) -> Arrays {
                          Array out{Shape{}};
                          out[0] =
                              a[0][0] >= static_cast<double>(a.attribute<CountAttributes>().value);
                          return {out};
                        }});
  references.push_back({&with_updates_op, [](const Application& a) -> Arrays { return {a[0]}; }});
}

}  // namespace ebb::tests
