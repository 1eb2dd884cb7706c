#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <type_traits>

#include "ebb/core/base/half.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// An integer key for each number, in the same order: equal numbers have one key, NaN the largest.
template <class T>
auto key_of(T x) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    using Key = std::conditional_t<sizeof(T) == 8, std::int64_t,
                                   std::conditional_t<sizeof(T) == 4, std::int32_t, std::int16_t>>;
    constexpr Key kRest = std::numeric_limits<Key>::max();  // all bits but the sign
    const auto infinity = std::bit_cast<Key>(T(std::numeric_limits<float>::infinity()));
    const auto bits = std::bit_cast<Key>(x);
    const auto size = static_cast<Key>(bits & kRest);
    if (size > infinity) return kRest;
    return bits < 0 ? static_cast<Key>(-size) : size;
  }
}

// Whether index a stands before index b.
template <class T>
struct Before {
  const T* row;
  bool descending;

  bool operator()(std::int64_t a, std::int64_t b) const noexcept {
    const auto x = key_of(row[a]), y = key_of(row[b]);
    if (x == y) return a < b;
    return (x < y) != descending;
  }
};

template <class T>
void argsort(const T* in, std::int64_t* out, std::int64_t rows, std::int64_t size,
             std::int64_t count, bool descending) {
  for_items(rows, rows_per_piece(8 * size), [=](std::int64_t row) {
    const Before<T> before{in + row * size, descending};
    std::int64_t* const to = out + row * count;
    std::iota(to, to + count, std::int64_t{0});
    if (count == size) return std::sort(to, to + count, before);
    // A heap of the first ones so far, with the last of them on top.
    std::make_heap(to, to + count, before);
    for (std::int64_t i = count; i < size; ++i) {
      // An element equal to the top stands behind it.
      const auto x = key_of(before.row[i]), last = key_of(before.row[to[0]]);
      if (descending ? x <= last : x >= last) continue;
      std::pop_heap(to, to + count, before);
      to[count - 1] = i;
      std::push_heap(to, to + count, before);
    }
    std::sort_heap(to, to + count, before);
  });
}

}  // namespace

Status argsort(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const std::int64_t size = in.spec.shape.dim(-1), count = out.spec.shape.dim(-1);
  const bool descending = context.attribute<SortAttributes>().descending != 0;
  return for_stored(in.spec.dtype, [&]<class T>(T) {
    argsort(in.as<const T>(), out.as<std::int64_t>(), out.elements() / count, size, count,
            descending);
  });
}

}  // namespace ebb::cpu
