#include "ebb/core/kernels/linear.h"

#include "ebb/kernels/cpu/activate.h"
#include "ebb/kernels/cpu/column_sum.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/in_float.h"

namespace ebb::cpu {
namespace {

struct DenseSizes {
  std::int64_t rows, in, out;

  DenseSizes(const Spec& x, const Spec& w) noexcept : in(w.shape[0]), out(w.shape[1]) {
    rows = 1;
    for (int axis = 0; axis + 1 < x.shape.rank(); ++axis) rows *= x.shape[axis];
  }
};

// dx reads w, dw reads x.
bool reads_input(std::size_t input, const IndexSet& unwanted) {
  return input == 2 || !unwanted.has(1 - input);
}

}  // namespace

Status matmul(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, matmul);
  const auto& attributes = context.attribute<MatmulAttributes>();
  const Buffer &a = context.inputs[0], &b = context.inputs[1], &out = context.outputs[0];
  const bool transpose_a = attributes.transpose_a != 0, transpose_b = attributes.transpose_b != 0;
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t n = out.spec.shape[1];
    multiply_all<T>(out.spec.shape[0], n, a.spec.shape[transpose_a ? 0 : 1],
                    {a.as<const T>(), a.spec.shape[1], transpose_a},
                    {b.as<const T>(), b.spec.shape[1], transpose_b}, out.as<T>(), n);
  });
}

MemoryNeeds matmul_memory(const MemoryQuery& query) {
  if (is_half(query.outputs[0].dtype)) return in_float_memory(query, matmul_memory);
  return {};
}

Status dense(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, dense);
  const auto& attributes = context.attribute<DenseAttributes>();
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &y = context.outputs[0];
  const DenseSizes size(x.spec, w.spec);
  return for_floating(y.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* bias = attributes.bias != 0 ? context.inputs[2].as<const T>() : nullptr;
    T* out = y.as<T>();
    multiply_with<T>(
        size.rows, size.out, size.in, {x.as<const T>(), size.in}, {w.as<const T>(), size.out}, out,
        size.out, false,
        [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
          for (std::int64_t i = row; i < row + rows; ++i)
            add_bias_and_activate(attributes.activation, out + i * size.out + column,
                                  bias == nullptr ? nullptr : bias + column, columns);
        });
  });
}

MemoryNeeds dense_memory(const MemoryQuery& query) {
  if (is_half(query.outputs[0].dtype)) return in_float_memory(query, dense_memory);
  return {};
}

MemoryNeeds dense_backward_memory(const MemoryQuery& query) {
  if (is_half(query.outputs[0].dtype))
    return in_float_memory(query, dense_backward_memory, reads_input);
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  return {.workspace_bytes = column_sum_bytes(size.rows, size.out)};
}

Status dense_backward(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, dense_backward, reads_input);
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &da = context.inputs[2];
  const Buffer &dx = context.outputs[0], &dw = context.outputs[1], &db = context.outputs[2];
  const DenseSizes size(x.spec, w.spec);
  return for_floating(da.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* dz = da.as<const T>();
    if (db.data != nullptr) column_sum(dz, size.rows, size.out, db.as<T>(), context.workspace);
    if (dw.data != nullptr)
      multiply_all<T>(size.in, size.out, size.rows, {x.as<const T>(), size.in, true},
                      {dz, size.out}, dw.as<T>(), size.out);
    // Last, since dx may have taken the memory of x over.
    if (dx.data != nullptr)
      multiply_all<T>(size.rows, size.in, size.out, {dz, size.out},
                      {w.as<const T>(), size.out, true}, dx.as<T>(), size.in);
  });
}

Status activation_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &y = context.inputs[1], &da = context.outputs[0];
  return for_stored(da.spec.dtype, [&](auto type) {
    using T = decltype(type);
    multiply_by_derivative(context.attribute<ActivationAttributes>().activation, y.as<const T>(),
                           dy.as<const T>(), da.as<T>(), da.elements());
  });
}

}  // namespace ebb::cpu
