#include <functional>
#include <string>

#include "ebb/core/ops/statistics.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_statistic_samples(std::vector<Sample>& samples) {
  using Call = std::function<Tensor(const Tensor&, const Axes&, bool)>;
  const struct {
    const OpDef& op;
    std::string name;
    Call call;
    Values values;
  } kinds[] = {
      {variance_op, "variance",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return variance(x, {.axes = axes, .keep = keep});
       },
       Values::any},
      {variance_op, "variance of a sample",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return variance(x, {.axes = axes, .keep = keep, .correction = 1});
       },
       Values::any},
      {standard_deviation_op, "standard_deviation",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return standard_deviation(x, {.axes = axes, .keep = keep});
       },
       Values::any},
      {norm1_op, "norm, of sizes",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return norm(x, {.p = 1, .axes = axes, .keep = keep});
       },
       Values::apart_from_zero},
      {norm2_op, "norm",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return norm(x, {.axes = axes, .keep = keep});
       },
       Values::any},
      {logsumexp_op, "logsumexp",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return logsumexp(x, {.axes = axes, .keep = keep});
       },
       Values::any},
      {prod_op, "prod",
       [](const Tensor& x, const Axes& axes, bool keep) {
         return prod(x, {.axes = axes, .keep = keep});
       },
       Values::apart_from_zero},
  };
  for (const auto& kind : kinds) {
    const auto add = [&](const char* how, const Shape& shape, const Axes& axes, bool keep) {
      samples.push_back({.op = &kind.op,
                         .name = kind.name + ", " + how,
                         .inputs = {{shape, kind.values}},
                         .call = [call = kind.call, axes, keep](const Tensors& in) -> Tensors {
                           return {call(in[0], axes, keep)};
                         },
                         .any_shape = true});
    };
    add("all", {4, 3}, {}, false);
    add("rows", {kOpen, 7}, {-1}, false);
    add("the first axis, kept", {5, kOpen, 2}, {0}, true);
    add("outer and inner axes", {2, kOpen, 3, 2}, {0, 2}, false);
    if (&kind.op != &variance_op && &kind.op != &standard_deviation_op)  // NaN of nothing
      add("an open axis", {kOpen, 3}, {0}, false);
  }
}

}  // namespace ebb::tests
