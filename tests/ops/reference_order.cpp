#include "ebb/core/kernels/order.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/scan.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// Whether x stands before y: NaN before all numbers.
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
    Index left;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if ((how.axes >> axis & 1) == 0)
        left.push_back(index[axis]);
      else if (how.keep)
        left.push_back(0);
    }
    const std::int64_t to = position(out.shape, left);
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

// The indices of each row by insertion, which leaves equals in their order.
Arrays argsort(const Application& a) {
  const bool descending = a.attribute<SortAttributes>().descending != 0;
  Array out(a.outputs[0].shape);
  if (out.elements() == 0) return {out};
  const std::int64_t size = a[0].shape[-1], count = out.shape[-1];
  for (std::int64_t row = 0; row < out.elements() / count; ++row) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < size; ++i) {
      // NaN as larger than any number.
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

void add_order_references(std::vector<Reference>& references) {
  for (const OpDef* op : {&max_op, &min_op, &argmax_op, &argmin_op})
    references.push_back({op, extreme});
  for (const OpDef* op : {&argsort_op, &topk_op}) references.push_back({op, argsort});
  references.push_back({&cumsum_op, scanned});
  references.push_back({&cumprod_op, scanned});
  references.push_back({&recurrence_op, recurrence});
}

}  // namespace ebb::tests
