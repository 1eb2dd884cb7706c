#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/order.h"
#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/scan.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

void add_extremes(std::vector<Sample>& samples) {
  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, const ReduceOptions&);
  } extremes[] = {{max_op, max}, {min_op, min}};
  for (const auto& kind : extremes) {
    const auto add = [&, f = kind.call](const char* how, const Shape& shape,
                                        const ReduceOptions& options) {
      samples.push_back(moving_sample(kind.op, how, {{shape}}, EBB_CALL(f(in[0], options)), true));
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
      samples.push_back(moving_sample(kind.op, how, {{shape}}, EBB_CALL(f(in[0], options)), true));
      samples.back().order = kNoGradient;
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
    samples.push_back(moving_sample(op, how, {{shape}}, EBB_CALL(call(in[0])), true));
    samples.back().order = kNoGradient;
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
    samples.push_back(
        of_any_shape(cumsum_op, how, {{shape}}, EBB_CALL(cumsum(in[0], axis, options))));
    samples.push_back(of_any_shape(cumprod_op, how, {{shape, Values::apart_from_zero}},
                                   EBB_CALL(cumprod(in[0], axis, options))));
  };
  const auto add_recurrence = [&](const char* how, const Shape& shape,
                                  const RecurrenceAttributes& attributes) {
    const auto inputs = static_cast<std::size_t>(1 + attributes.has_sum + attributes.has_weight);
    samples.push_back(sample_of(recurrence_op, how,
                                std::vector<SampleInput>(inputs, {shape, Values::any, DType::f64}),
                                applying(recurrence_op, attributes)));
    samples.back().any_shape = inputs == 1;
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

// Whether x comes before y: NaN comes before all numbers.
bool is_before(double x, double y, bool smallest) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
  return smallest ? x < y : x > y;
}

Arrays extreme(const Application& a) {
  const auto& how = a.attribute<ExtremeAttributes>();
  Array out(a.outputs[0].shape), best(a.outputs[0].shape);
  std::vector<std::int64_t> seen(best.values.size());
  std::int64_t next = 0;
  for_each_index(a[0].shape, [&](const Index& index) {
    const std::int64_t to = position(out.shape, without_axes(index, how.axes, how.keep));
    const double x = a[0][next++];
    std::int64_t& term = seen[static_cast<std::size_t>(to)];
    if (term == 0 || is_before(x, best[to], how.smallest != 0)) {
      best[to] = x;
      out[to] = how.position ? static_cast<double>(term) : x;
    }
    ++term;
  });
  return {out};
}

// Sorts the indices of each row by insertion, which keeps the order of equal values.
Arrays argsort(const Application& a) {
  const bool descending = a.attribute<SortAttributes>().descending != 0;
  Array out(a.outputs[0].shape);
  if (out.elements() == 0) return {out};
  const std::int64_t size = a[0].shape[-1], count = out.shape[-1];
  for (std::int64_t row = 0; row < out.elements() / count; ++row) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < size; ++i) {
      // NaN counts as larger than any number.
      const auto is_larger = [&](std::int64_t p, std::int64_t q) {
        return is_before(a[0][row * size + p], a[0][row * size + q], false);
      };
      auto at = order.end();
      while (at != order.begin() && (descending ? is_larger(i, at[-1]) : is_larger(at[-1], i)))
        --at;
      order.insert(at, i);
    }
    for (std::int64_t i = 0; i < count; ++i)
      out[row * count + i] = static_cast<double>(order[static_cast<std::size_t>(i)]);
  }
  return {out};
}

Arrays scanned(const Application& a) {
  const auto& how = a.attribute<ScanAttributes>();
  const auto axis = static_cast<std::size_t>(how.axis);
  const Shape& shape = a[0].shape;
  Shape columns = shape;
  columns.set(how.axis, 1);
  Array out(shape), totals(columns);
  std::fill(totals.values.begin(), totals.values.end(), how.product);
  for_each_index(shape, [&](const Index& index) {
    Index place = index;
    if (how.reverse) place[axis] = shape[how.axis] - 1 - index[axis];
    const std::int64_t at = position(shape, place);
    double& total = totals[position(columns, index)];
    const double before = total, x = a[0][at];
    total = how.product ? total * x : total + x;
    out[at] = how.exclusive ? before : total;
  });
  return {out};
}

Arrays recurrence(const Application& a) {
  const auto& how = a.attribute<RecurrenceAttributes>();
  const auto axis = static_cast<std::size_t>(how.axis);
  Array out(a[0].shape);
  for_each_index(out.shape, [&](Index index) {
    if (index[axis] != 0) return;
    double carried = how.has_sum ? 0 : 1;
    for (std::int64_t k = 0; k < out.shape[how.axis]; ++k) {
      index[axis] = how.reverse ? out.shape[how.axis] - 1 - k : k;
      const std::int64_t at = position(out.shape, index);
      out[at] = how.has_weight ? carried * a.inputs.back()[at] : carried;
      carried = carried * a[0][at] + (how.has_sum ? a[1][at] : 0);
    }
  });
  return {out};
}

}  // namespace

void order_family(std::vector<Sample>& samples, References& references, DType) {
  add_extremes(samples);
  add_sorts(samples);
  add_scans(samples);

  for (const OpDef* op : {&max_op, &min_op, &argmax_op, &argmin_op}) references.add(*op, extreme);
  for (const OpDef* op : {&argsort_op, &topk_op}) references.add(*op, argsort);
  references.add(cumsum_op, scanned);
  references.add(cumprod_op, scanned);
  references.add(recurrence_op, recurrence);
}

}  // namespace ebb::tests
