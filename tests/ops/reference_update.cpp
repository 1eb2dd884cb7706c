#include "ebb/core/kernels/update.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// Each element of the first input from itself, that of the second, and what all of them share.
template <class Element>
Arrays updated(const Application& a, const Element& element) {
  Array x = a[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = element(x[i], i);
  return {x};
}

}  // namespace

void add_update_references(std::vector<Reference>& references) {
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
