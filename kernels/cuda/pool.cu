#include "ebb/core/kernels/pool.h"

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {
namespace {

// Splits an index into plane, row and column.
struct Grid {
  AnyDivider by_columns, by_rows;

  struct Position {
    std::int64_t plane, row, column;
  };
  explicit Grid(const std::int64_t (&size)[2]) noexcept : by_columns(size[1]), by_rows(size[0]) {}
  __device__ Position operator()(std::int64_t i) const {
    std::int64_t row = by_columns.divide(i);
    const std::int64_t plane = by_rows.divide(row);
    return {plane, row, i};
  }
};

template <class T>
struct Largest {
  PoolLayout of;
  Grid positions;
  const T *from, *x;
  T* out;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const Grid::Position position = positions(i);
    const std::int64_t first = position.plane * of.pixels();
    out[i] = from[first + of.largest(x + first, position.row, position.column)];
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
    const Grid::Position position = positions(n);
    const T* plane = x + position.plane * of.pixels();
    const PoolRange rows = of.window(0, position.row), columns = of.window(1, position.column);
    Accumulate<T> sum = 0;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = columns.begin; column < columns.end; ++column)
        sum += static_cast<Accumulate<T>>(plane[row * of.size[1] + column]);
    out[n] =
        static_cast<T>(sum / static_cast<Accumulate<T>>(of.count(position.row, position.column)));
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
    const Grid::Position pixel = pixels(n);
    const std::int64_t plane = pixel.plane * of.pixels();
    const PoolRange rows = of.windows_of(0, pixel.row), columns = of.windows_of(1, pixel.column);
    Accumulate<T> sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const T& d = dy[pixel.plane * of.windows() + i * of.places[1] + j];
        if (x == nullptr)
          sum += static_cast<Accumulate<T>>(d) / static_cast<Accumulate<T>>(of.count(i, j));
        else if (of.largest(x + plane, i, j) == pixel.row * of.size[1] + pixel.column)
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
