#include "ebb/core/kernels/linear.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/kernels/matmul_layout.h"
#include "ebb/kernels/cpu/column_sum.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
namespace {

// Multiplications that are worth a piece of their own.
constexpr std::int64_t kWorkOfPiece = 100'000;

template <class F>
struct AfterBias {
  static constexpr bool exact = kExact<F>;
  auto operator()(const auto& x, const auto& bias) const { return F()(x + bias); }
};

// y[i] = F()(y[i] + bias[i]); a null bias counts as zeros.
template <class F, class T>
void activate(T* y, const T* bias, std::int64_t count) noexcept {
  if (bias != nullptr)
    zip_run<false, false>(AfterBias<F>(), y, bias, y, count);
  else
    map_run(F(), y, y, count);
}

template <class T>
void activate(Activation activation, T* y, const T* bias, std::int64_t count) noexcept {
  switch (activation) {
    case Activation::relu:
      return activate<functors::Relu>(y, bias, count);
    case Activation::tanh:
      return activate<functors::Tanh>(y, bias, count);
    case Activation::sigmoid:
      return activate<functors::Sigmoid>(y, bias, count);
    default:
      if (bias != nullptr) zip_run<false, false>(functors::Add(), y, bias, y, count);
  }
}

}  // namespace

Status matmul(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1], &out = context.outputs[0];
  const MatmulLayout layout(a.spec.shape, b.spec.shape, out.spec.shape,
                            context.attribute<MatmulAttributes>());
  const std::int64_t m = layout.m, n = layout.n, k = layout.k;
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const Factor<T> first{a.as<const T>(), a.spec.shape.dim(-1), layout.transpose_a};
    const Factor<T> second{b.as<const T>(), b.spec.shape.dim(-1), layout.transpose_b};
    if (layout.batch == 1) return multiply_all<T>(m, n, k, first, second, out.as<T>(), n);

    // A piece is a block of one result, or several small results.
    const Cut cut(m, n, k, layout.transpose_b);
    const std::int64_t blocks = cut.pieces(), work = std::max<std::int64_t>(1, m * n * k);
    const std::int64_t at_once = blocks > 1 ? 1 : std::max<std::int64_t>(1, kWorkOfPiece / work);
    for_items(layout.batch * blocks, at_once, [&](std::int64_t piece) {
      std::int64_t i, j;
      layout.factors(piece / blocks, i, j);
      const auto [row, rows, column, columns] = cut.block(piece % blocks, m, n);
      Factor<T> x = first, y = second;
      x.data += i * m * k;
      y.data += j * k * n;
      multiply(rows, columns, k, x.at(row, 0), y.at(0, column),
               out.as<T>() + (piece / blocks * m + row) * n + column, n, false);
    });
  });
}

Status dense(const KernelContext& context) {
  const auto& attributes = context.attribute<DenseAttributes>();
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &y = context.outputs[0];
  const DenseSizes size(x.spec, w.spec);
  return for_wide(y.spec.dtype, [&]<class T>(T) {
    const T* bias = attributes.bias != 0 ? context.inputs[2].as<const T>() : nullptr;
    T* out = y.as<T>();
    multiply_with<T>(
        size.rows, size.out, size.in, {x.as<const T>(), size.in}, {w.as<const T>(), size.out}, out,
        size.out, false,
        [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
          for (std::int64_t i = row; i < row + rows; ++i)
            activate(attributes.activation, out + i * size.out + column,
                     bias == nullptr ? nullptr : bias + column, columns);
        });
  });
}

MemoryNeeds dense_backward_memory(const MemoryQuery& query) {
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  return {.workspace_bytes = column_sum_bytes(size.rows, size.out)};
}

Status dense_backward(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &da = context.inputs[2];
  const Buffer &dx = context.outputs[0], &dw = context.outputs[1], &db = context.outputs[2];
  const DenseSizes size(x.spec, w.spec);
  return for_wide(da.spec.dtype, [&]<class T>(T) {
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
  switch (context.attribute<ActivationAttributes>().activation) {
    case Activation::relu:
      return cpu::pair<functors::ReluGradient>(context);
    case Activation::tanh:
      return cpu::pair<functors::TanhGradient>(context);
    default:
      return cpu::pair<functors::SigmoidGradient>(context);
  }
}

}  // namespace ebb::cpu
