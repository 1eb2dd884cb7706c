#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Sample sample(const OpDef& op, const char* how, std::vector<SampleInput> inputs,
              std::function<Tensor(const Tensors&)> call) {
  Sample made = moving_sample(op, how, std::move(inputs), std::move(call), true);
  return made;
}

void add_extremes(std::vector<Sample>& samples) {
  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, const ReduceOptions&);
  } extremes[] = {{max_op, max}, {min_op, min}};
  for (const auto& kind : extremes) {
    const auto add = [&, f = kind.call](const char* how, const Shape& shape,
                                        const ReduceOptions& options) {
      samples.push_back(sample(kind.op, how, {{shape}},
                               [f, options](const Tensors& in) { return f(in[0], options); }));
    };
    add("all", {4, 3}, {});
    add("rows", {kOpen, 7}, {.axes = {-1}});
    add("a middle axis", {kOpen, 4, 3}, {.axes = {1}});
    add("the first axis, kept", {5, kOpen, 2}, {.axes = {0}, .keep = true});
    add("outer and inner axes", {2, kOpen, 3, 2}, {.axes = {0, 2}});
    add("two kinds in turn", {2, kOpen, 2, 3}, {.axes = {0, 3}, .keep = true});
  }

  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, const ArgOptions&);
  } positions[] = {{argmax_op, argmax}, {argmin_op, argmin}};
  for (const auto& kind : positions) {
    const auto add = [&, f = kind.call](const char* how, const Shape& shape,
                                        const ArgOptions& options) {
      samples.push_back(sample(kind.op, how, {{shape}},
                               [f, options](const Tensors& in) { return f(in[0], options); }));
      samples.back().order = 0;
    };
    add("all", {4, 3}, {});
    add("all, kept", {2, 2, 3}, {.keep = true});
    add("rows", {kOpen, 7}, {.axis = -1});
    add("a middle axis, kept", {kOpen, 4, 3}, {.axis = 1, .keep = true});
    add("the first axis", {5, kOpen}, {.axis = 0});
    add("a scalar", {}, {});
  }
}

void add_sorts(std::vector<Sample>& samples) {
  const auto add = [&](const OpDef& op, const char* how, const Shape& shape, auto call) {
    samples.push_back(
        sample(op, how, {{shape}}, [call](const Tensors& in) { return call(in[0]); }));
    samples.back().order = 0;
    samples.back().largest_batch = 5000;
  };
  add(argsort_op, "rows", {kOpen, 7}, [](const Tensor& x) { return argsort(x); });
  add(argsort_op, "descending", {kOpen, 2, 5},
      [](const Tensor& x) { return argsort(x, {.descending = true}); });
  add(argsort_op, "an open axis", {2, kOpen}, [](const Tensor& x) { return argsort(x); });
  add(topk_op, "the largest", {kOpen, 7}, [](const Tensor& x) { return topk(x, 3).indices; });
  add(topk_op, "the smallest", {kOpen, 2, 4},
      [](const Tensor& x) { return topk(x, 4, {.largest = false}).indices; });
  add(topk_op, "none", {kOpen, 3}, [](const Tensor& x) { return topk(x, 0).indices; });
}

void add_scans(std::vector<Sample>& samples) {
  const auto add = [&](const char* how, const Shape& shape, int axis,
                       const CumsumOptions& options) {
    samples.push_back(sample(cumsum_op, how, {{shape}}, [axis, options](const Tensors& in) {
      return cumsum(in[0], axis, options);
    }));
    samples.back().any_dtype = false;
    samples.push_back(
        sample(cumprod_op, how, {{shape, Values::apart_from_zero}},
               [axis, options](const Tensors& in) { return cumprod(in[0], axis, options); }));
    samples.back().any_dtype = false;
  };
  const auto add_recurrence = [&](const char* how, const Shape& shape,
                                  const RecurrenceAttributes& attributes) {
    const auto inputs = static_cast<std::size_t>(1 + attributes.has_sum + attributes.has_weight);
    samples.push_back({.op = &recurrence_op,
                       .name = std::string("recurrence, ") + how,
                       .inputs = std::vector<SampleInput>(inputs, {shape, Values::any, DType::f64}),
                       .call = [attributes](const Tensors& in) -> Tensors {
                         const InlineVector<Input, 3> given(in.begin(), in.end());
                         return apply(recurrence_op, {given.data(), given.size()}, attributes, {});
                       },
                       .any_shape = inputs == 1});
  };
  add_recurrence("products", {kOpen, 5}, {.axis = 1});
  add_recurrence("products with a weight", {2, kOpen, 3},
                 {.axis = 1, .reverse = 1, .has_weight = 1});
  add_recurrence("sums", {kOpen, 40}, {.axis = 1, .has_sum = 1});
  add_recurrence("sums with a weight", {4, kOpen}, {.reverse = 1, .has_sum = 1, .has_weight = 1});
  add("rows", {kOpen, 5}, -1, {});
  add("exclusive", {kOpen, 5}, 1, {.exclusive = true});
  add("an open axis, reverse", {2, kOpen, 3}, 1, {.reverse = true});
  add("the first axis, both", {4, kOpen}, 0, {.exclusive = true, .reverse = true});
}

}  // namespace

void add_order_samples(std::vector<Sample>& samples) {
  add_extremes(samples);
  add_sorts(samples);
  add_scans(samples);
}

}  // namespace ebb::tests
