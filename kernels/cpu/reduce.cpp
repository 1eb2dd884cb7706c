#include "ebb/core/kernels/reduce.h"

#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cpu/broadcast.h"
#include "ebb/kernels/cpu/column_sum.h"
#include "ebb/kernels/cpu/merged_walk.h"
#include "ebb/kernels/cpu/reduce_loops.h"
#include "ebb/kernels/cpu/sum_runs.h"

namespace ebb::cpu {
namespace {

template <class T>
void reduce(const T* in, T* out, const MergedAxes& merged, double divisor, void* workspace) {
  const auto result = [=](double total) { return static_cast<T>(total / divisor); };
  if (merged.inner_reduced && merged.groups <= 1) {
    sum_runs(merged, out, divisor,
             [=] { return [=](std::int64_t begin, std::int64_t) { return in + begin; }; });
  } else if (!merged.inner_reduced && merged.groups == 1 && divisor == 1) {
    column_sum(in, merged.outer_reduced, merged.inner, out, workspace);
  } else {
    const bool is_even = merged.groups <= 2;  // then reduced rows lie evenly
    for_results(
        merged, kStrip<T>,
        [&](std::int64_t o, std::int64_t at) {
          double total = 0;
          for (std::int64_t r = 0; r < merged.outer_reduced; ++r)
            total += add_contiguous(in + at + merged.offset(r, true), merged.inner);
          out[o] = result(total);
        },
        [&](std::int64_t o, std::int64_t at, std::int64_t count) {
          double totals[kStrip<T>] = {};
          if (is_even)
            add_rows(
                in + at, merged.outer_reduced, count,
                [inner = merged.inner](std::int64_t r) { return r * inner; }, totals);
          else
            add_rows(
                in + at, merged.outer_reduced, count,
                [&](std::int64_t r) { return merged.offset(r, true); }, totals);
          for (std::int64_t j = 0; j < count; ++j) out[o + j] = result(totals[j]);
        });
  }
}

Status reduce(const Buffer& in, const Buffer& out, const Reduction& reduction, void* workspace) {
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  const double divisor = reduction.divisor(count, results);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    if (count == 0) {
      for (std::int64_t i = 0; i < results; ++i) out.as<T>()[i] = static_cast<T>(0.0 / divisor);
    } else if (count == results && divisor == 1) {
      if (out.data != in.data) std::memcpy(out.data, in.data, in.spec.bytes());
    } else {
      reduce(in.as<const T>(), out.as<T>(), MergedAxes(in.spec.shape, reduction.axes), divisor,
             workspace);
    }
  });
}

MemoryNeeds memory_of(const Shape& shape, std::uint32_t axes) noexcept {
  const MergedAxes merged(shape, axes);
  if (shape.elements() == 0 || merged.inner_reduced || merged.groups != 1) return {};
  return {.workspace_bytes = column_sum_bytes(merged.outer_reduced, merged.inner)};
}

}  // namespace

Status sum(const KernelContext& context) {
  if (!is_floating(context.inputs[0].spec.dtype)) return sum_integers(context);
  return reduce(context.inputs[0], context.outputs[0], context.attribute<Reduction>(),
                context.workspace);
}

Status sum_like(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return reduce(in, out, {.axes = axes_between(in.spec.shape, out.spec.shape)}, context.workspace);
}

MemoryNeeds sum_memory(const MemoryQuery& query) {
  if (!is_floating(query.inputs[0].dtype)) return {};
  return memory_of(query.inputs[0].shape, query.attribute<Reduction>().axes);
}

MemoryNeeds sum_like_memory(const MemoryQuery& query) {
  return memory_of(query.inputs[0].shape,
                   axes_between(query.inputs[0].shape, query.outputs[0].shape));
}

Status broadcast_like(const KernelContext& context) {
  const auto& reduction = context.attribute<Reduction>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Shape& shape = out.spec.shape;
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if ((reduction.axes >> axis & 1u) != 0) kept.set(axis, 1);
  const double divisor = reduction.divisor(out.elements(), in.elements());
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const auto number = static_cast<Computed<T>>(divisor);
    broadcast(functors::Divide(), in.as<const T>(), kept, &number, Shape(), out.as<T>(), shape);
  });
}

}  // namespace ebb::cpu
