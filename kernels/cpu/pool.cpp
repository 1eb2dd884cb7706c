#include "ebb/core/kernels/pool.h"

#include <algorithm>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

PoolLayout layout_of(const KernelContext& context, const Buffer& x, const Buffer& y) noexcept {
  return {x.spec.shape, y.spec.shape, context.attribute<PoolAttributes>()};
}

// body(i, j, element of y) for each place of some rows of all planes; the first argument is a
// plane.
template <class Body>
void for_places(const PoolLayout& of, const Body& body) {
  const std::int64_t reads = of.places[1] * of.attributes.kernel[0] * of.attributes.kernel[1];
  for_pieces(of.planes * of.places[0], rows_per_piece(reads),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t row = begin; row < end; ++row)
                 for (std::int64_t j = 0; j < of.places[1]; ++j)
                   body(row / of.places[0], row % of.places[0], j, row * of.places[1] + j);
             });
}

bool reads_dy(std::size_t input, const IndexSet&) { return input == 0; }

}  // namespace

Status max_pool(const KernelContext& context) {
  const Buffer &from = context.inputs[0], &x = context.inputs.back(), &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, out);
  return for_stored(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    for_places(of, [&](std::int64_t plane, std::int64_t i, std::int64_t j, std::int64_t to) {
      const std::int64_t first = plane * of.pixels();
      out.as<T>()[to] = from.as<const T>()[first + of.largest(x.as<const T>() + first, i, j)];
    });
  });
}

MemoryNeeds max_pool_backward_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr) : MemoryNeeds();
}

// A piece is some planes.
Status max_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, max_pool_backward);
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, dy);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    for_pieces(of.planes, rows_per_piece(of.pixels()), [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<T>() + begin * of.pixels(), out.as<T>() + end * of.pixels(), T{});
      for (std::int64_t plane = begin; plane < end; ++plane) {
        const T *pixels = x.as<const T>() + plane * of.pixels(),
                *from = dy.as<const T>() + plane * of.windows();
        T* to = out.as<T>() + plane * of.pixels();
        for (std::int64_t i = 0; i < of.places[0]; ++i)
          for (std::int64_t j = 0; j < of.places[1]; ++j)
            to[of.largest(pixels, i, j)] += from[i * of.places[1] + j];
      }
    });
  });
}

MemoryNeeds avg_pool_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr) : MemoryNeeds();
}

Status avg_pool(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, avg_pool);
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, out);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    for_places(of, [&](std::int64_t plane, std::int64_t i, std::int64_t j, std::int64_t to) {
      const T* pixels = x.as<const T>() + plane * of.pixels();
      const PoolRange rows = of.window(0, i), columns = of.window(1, j);
      T sum{};
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t column = columns.begin; column < columns.end; ++column)
          sum += pixels[row * of.size[1] + column];
      out.as<T>()[to] = sum / static_cast<T>(of.count(i, j));
    });
  });
}

MemoryNeeds avg_pool_backward_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr, reads_dy)
                                         : MemoryNeeds();
}

Status avg_pool_backward(const KernelContext& context) {
  const Buffer &dy = context.inputs[0], &x = context.inputs[1], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, avg_pool_backward, reads_dy);
  if (out.elements() == 0) return {};
  const PoolLayout of = layout_of(context, x, dy);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    for_pieces(of.planes, rows_per_piece(of.pixels()), [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<T>() + begin * of.pixels(), out.as<T>() + end * of.pixels(), T{});
      for (std::int64_t plane = begin; plane < end; ++plane) {
        const T* from = dy.as<const T>() + plane * of.windows();
        T* to = out.as<T>() + plane * of.pixels();
        for (std::int64_t i = 0; i < of.places[0]; ++i)
          for (std::int64_t j = 0; j < of.places[1]; ++j) {
            const PoolRange rows = of.window(0, i), columns = of.window(1, j);
            const T part = from[i * of.places[1] + j] / static_cast<T>(of.count(i, j));
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = columns.begin; column < columns.end; ++column)
                to[row * of.size[1] + column] += part;
          }
      }
    });
  });
}

}  // namespace ebb::cpu
