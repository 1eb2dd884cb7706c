#include "ebb/core/kernels/pool.h"

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {
namespace {

using Grid = Split<std::uint64_t, 3>;  // plane, row, column

template <class T>
struct Largest {
  PoolLayout of;
  Grid positions;
  const T *from, *x;
  T* out;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto [plane, row, column] = positions(i);
    const std::int64_t first = plane * of.pixels();
    out[i] = from[first + of.largest(x + first, row, column)];
  }
};

template <class T>
struct Mean {
  PoolLayout of;
  Grid positions;
  const T* x;
  T* out;

  template <int N>
  __device__ void at(std::int64_t n) const {
    const auto [plane, row, column] = positions(n);
    const T* const pixels = x + plane * of.pixels();
    const PoolRange rows = of.window(0, row), columns = of.window(1, column);
    Accumulate<T> sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      for (std::int64_t j = columns.begin; j < columns.end; ++j)
        sum += static_cast<Accumulate<T>>(pixels[i * of.size[1] + j]);
    out[n] = static_cast<T>(sum / static_cast<Accumulate<T>>(of.count(row, column)));
  }
};

// Each pixel sums its shares of dy: in max_pool all of those windows in which it is the largest.
template <class T>
struct Backward {
  PoolLayout of;
  Grid pixels;
  const T* dy;
  const T* x;  // null: avg_pool
  T* out;

  template <int N>
  __device__ void at(std::int64_t n) const {
    const auto [plane, row, column] = pixels(n);
    const PoolRange rows = of.windows_of(0, row), columns = of.windows_of(1, column);
    Accumulate<T> sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const T& d = dy[plane * of.windows() + i * of.places[1] + j];
        if (x == nullptr)
          sum += static_cast<Accumulate<T>>(d) / static_cast<Accumulate<T>>(of.count(i, j));
        else if (of.largest(x + plane * of.pixels(), i, j) == row * of.size[1] + column)
          sum += static_cast<Accumulate<T>>(d);
      }
    out[n] = static_cast<T>(sum);
  }
};

// Runs a thread for each element of the output.
template <class Make>
Status pool(const KernelContext& context, const Buffer& x, const Buffer& y,
            const Make& make) noexcept {
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const PoolLayout of(x.spec.shape, y.spec.shape, context.attribute<PoolAttributes>());
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    return for_each<1>(stream_of(context), make(of, out.as<T>()), count, false);
  });
}

}  // namespace

Status max_pool(const KernelContext& context) {
  const Buffer &from = context.inputs[0], &x = context.inputs.back();
  return pool(context, x, context.outputs[0], [&]<class T>(const PoolLayout& of, T* out) {
    return Largest<T>{of, Grid(of.places), from.as<const T>(), x.as<const T>(), out};
  });
}

Status max_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1];
  return pool(context, x, dy, [&]<class T>(const PoolLayout& of, T* out) {
    return Backward<T>{of, Grid(of.size), dy.as<const T>(), x.as<const T>(), out};
  });
}

Status avg_pool(const KernelContext& context) {
  const Buffer& x = context.inputs[0];
  return pool(context, x, context.outputs[0], [&]<class T>(const PoolLayout& of, T* out) {
    return Mean<T>{of, Grid(of.places), x.as<const T>(), out};
  });
}

Status avg_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1];
  return pool(context, x, dy, [&]<class T>(const PoolLayout& of, T* out) {
    return Backward<T>{of, Grid(of.size), dy.as<const T>(), nullptr, out};
  });
}

}  // namespace ebb::cuda
