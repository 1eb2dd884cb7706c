#include "ebb/core/kernels/pool.h"

#include <algorithm>
#include <type_traits>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {
namespace {

// Windows that are processed together.
constexpr std::int64_t kTogether = 256;

PoolLayout layout_of(const KernelContext& context, const Buffer& x, const Buffer& y) noexcept {
  return {x.spec.shape, y.spec.shape, context.attribute<PoolAttributes>()};
}

// Calls body(plane, i) for each row of output positions of all planes.
template <class Body>
void for_position_rows(const PoolLayout& of, const Body& body) {
  const std::int64_t reads = of.places[1] * of.attributes.kernel[0] * of.attributes.kernel[1];
  for_items(of.planes * of.places[0], rows_per_piece(reads),
            [&](std::int64_t row) { body(row / of.places[0], row % of.places[0]); });
}

// Clears a gradient of the images, then calls body(plane, i) for each row of output positions. A
// piece is some planes.
template <class T, class Body>
void for_gradient_rows(const PoolLayout& of, T* out, const Body& body) {
  for_pieces(of.planes, rows_per_piece(of.pixels()), [&](std::int64_t begin, std::int64_t end) {
    std::fill(out + begin * of.pixels(), out + end * of.pixels(), T{});
    for (std::int64_t plane = begin; plane < end; ++plane)
      for (std::int64_t i = 0; i < of.places[0]; ++i) body(plane, i);
  });
}

// Calls edge(j) for each output position of a row whose window reaches beyond the images' width.
// Calls inside(begin, end, left, stride) for ranges of the others: the first window begins at
// column `left`, the next ones a stride further each. Positions come in order. Common strides are
// constants.
template <class Edge, class Inside>
void for_positions(const PoolLayout& of, const Edge& edge, const Inside& inside) {
  const std::int64_t kernel = of.attributes.kernel[1], padding = of.attributes.padding[1],
                     stride = of.attributes.stride[1], count = of.places[1];
  const std::int64_t behind = of.size[1] + padding - kernel;  // the last left side that fits
  const std::int64_t from = std::min(count, divide_up(padding, stride));
  const std::int64_t to = behind < 0 ? from : std::clamp(behind / stride + 1, from, count);
  for (std::int64_t j = 0; j < from; ++j) edge(j);
  const auto by = [&](auto step) {
    for (std::int64_t j = from; j < to; j += kTogether)
      inside(j, std::min(to, j + kTogether), j * stride - padding, step);
  };
  if (stride == 1)
    by(std::integral_constant<std::int64_t, 1>{});
  else if (stride == 2)
    by(std::integral_constant<std::int64_t, 2>{});
  else
    by(stride);
  for (std::int64_t j = to; j < count; ++j) edge(j);
}

// Calls body(j, position of the window's largest pixel in the plane) for each output position of
// row i.
template <class T, class Body>
void for_largest(const PoolLayout& of, const T* plane, std::int64_t i, const Body& body) {
  using V = decltype(PoolLayout::value_of(T()));
  const PoolRange rows = of.window(0, i);
  for_positions(
      of, [&](std::int64_t j) { body(j, of.largest(plane, i, j)); },
      [&](std::int64_t begin, std::int64_t end, std::int64_t left, auto stride) {
        V most[kTogether];
        std::int64_t best[kTogether];
        const std::int64_t count = end - begin, first = rows.begin * of.size[1] + left;
        for (std::int64_t j = 0; j < count; ++j) {
          best[j] = first + j * stride;
          most[j] = PoolLayout::value_of(plane[best[j]]);
        }
        for (std::int64_t y = rows.begin; y < rows.end; ++y)
          for (std::int64_t x = 0; x < of.attributes.kernel[1]; ++x) {
            const std::int64_t at = y * of.size[1] + left + x;
            for (std::int64_t j = 0; j < count; ++j) {
              const V value = PoolLayout::value_of(plane[at + j * stride]);
              const bool larger = (value > most[j]) | ((value != value) & (most[j] == most[j]));
              most[j] = larger ? value : most[j];
              best[j] = larger ? at + j * stride : best[j];
            }
          }
        for (std::int64_t j = 0; j < count; ++j) body(begin + j, best[j]);
      });
}

}  // namespace

Status max_pool(const KernelContext& context) {
  const Buffer &from = context.inputs[0], &x = context.inputs.back(), &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, out);
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    for_position_rows(of, [&](std::int64_t plane, std::int64_t i) {
      const T* chosen = from.as<const T>() + plane * of.pixels();
      T* to = out.as<T>() + (plane * of.places[0] + i) * of.places[1];
      for_largest(of, x.as<const T>() + plane * of.pixels(), i,
                  [=](std::int64_t j, std::int64_t best) { to[j] = chosen[best]; });
    });
  });
}

Status max_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, dy);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    for_gradient_rows(of, out.as<T>(), [&](std::int64_t plane, std::int64_t i) {
      const T* from = dy.as<const T>() + plane * of.windows() + i * of.places[1];
      T* to = out.as<T>() + plane * of.pixels();
      for_largest(of, x.as<const T>() + plane * of.pixels(), i,
                  [=](std::int64_t j, std::int64_t best) { to[best] += from[j]; });
    });
  });
}

Status avg_pool(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, out);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    for_position_rows(of, [&](std::int64_t plane, std::int64_t i) {
      const T* pixels = x.as<const T>() + plane * of.pixels();
      T* to = out.as<T>() + (plane * of.places[0] + i) * of.places[1];
      const PoolRange rows = of.window(0, i);
      for_positions(
          of,
          [&](std::int64_t j) {
            const PoolRange columns = of.window(1, j);
            T sum{};
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = columns.begin; column < columns.end; ++column)
                sum += pixels[row * of.size[1] + column];
            to[j] = sum / static_cast<T>(of.count(i, j));
          },
          [&](std::int64_t begin, std::int64_t end, std::int64_t left, auto stride) {
            T sums[kTogether] = {};
            const std::int64_t count = end - begin;
            if (of.attributes.kernel[1] == of.size[1]) {  // the window's pixels are neighbours
              Block<T> sum = 0;
              const std::int64_t last = rows.end * of.size[1];
              for (std::int64_t at = rows.begin * of.size[1]; at < last; at += kBlock<T>)
                sum += load_some(pixels + at, last - at, T(0));
              to[begin] = static_cast<T>(cpu::sum(sum) / static_cast<double>(of.count(i, begin)));
              return;
            }
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = 0; column < of.attributes.kernel[1]; ++column) {
                const T* from = pixels + row * of.size[1] + left + column;
                for (std::int64_t j = 0; j < count; ++j) sums[j] += from[j * stride];
              }
            const T elements = static_cast<T>(of.count(i, begin));
            for (std::int64_t j = 0; j < count; ++j) to[begin + j] = sums[j] / elements;
          });
    });
  });
}

Status avg_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, dy);
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    for_gradient_rows(of, out.as<T>(), [&](std::int64_t plane, std::int64_t i) {
      const T* gradients = dy.as<const T>() + plane * of.windows() + i * of.places[1];
      T* to = out.as<T>() + plane * of.pixels();
      const PoolRange rows = of.window(0, i);
      for_positions(
          of,
          [&](std::int64_t j) {
            const PoolRange columns = of.window(1, j);
            const T part = gradients[j] / static_cast<T>(of.count(i, j));
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = columns.begin; column < columns.end; ++column)
                to[row * of.size[1] + column] += part;
          },
          [&](std::int64_t begin, std::int64_t end, std::int64_t left, auto stride) {
            T parts[kTogether];
            const std::int64_t count = end - begin;
            const T elements = static_cast<T>(of.count(i, begin));
            for (std::int64_t j = 0; j < count; ++j) parts[j] = gradients[begin + j] / elements;
            if (of.attributes.kernel[1] == of.size[1]) {  // as above
              const T part = parts[0];
              for (T* at = to + rows.begin * of.size[1]; at < to + rows.end * of.size[1]; ++at)
                *at += part;
              return;
            }
            // From the right, so that a pixel adds its parts in the order of the windows.
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = of.attributes.kernel[1]; column-- > 0;) {
                T* at = to + row * of.size[1] + left + column;
                for (std::int64_t j = 0; j < count; ++j) at[j * stride] += parts[j];
              }
          });
    });
  });
}

}  // namespace ebb::cpu
