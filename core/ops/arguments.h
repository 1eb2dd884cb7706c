// The operators' headers include this: operands, definitions, axes, sizes and numbers.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include "ebb/core/base/inline_vector.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Axes of a tensor, by number; a negative one counts from the end.
using Axes = InlineVector<int, kMaxRank>;

namespace detail {
// An axis in a call that takes options as well; an enumerator counts too. A bool does not: it is
// meant as an option.
template <class T>
concept AxisNumber = (std::integral<T> || std::is_enum_v<T>)&&std::convertible_to<T, int> &&
                     !std::same_as<T, bool>;

// An axis as int; beyond it the largest, which no tensor has.
template <class T>
constexpr int axis_number(T axis) {
  if constexpr (std::integral<T>)
    if (!std::in_range<int>(axis)) return std::numeric_limits<int>::max();
  return static_cast<int>(axis);
}

// A number in a call that takes options as well. Braces do not match, since they mean options, nor
// does bool.
template <class T>
concept PlainNumber = std::floating_point<T> ||(std::integral<T> && !std::same_as<T, bool>);
}  // namespace detail

// Axes as an argument of their own: sum(x, 1), sum(x, {0, 2}), sum(x, std::vector{0, 2}).
//
// Where a function takes options as well, its overload for AxisList is a template only for the sake
// of overload resolution: a list in braces that could be either, such as {}, then means the
// options.
class AxisList : public Axes {
 public:
  // No constructor takes a std::initializer_list: g++ 12 would drop the name in {.dim = 1} and take
  // 1 as an axis.
  template <detail::AxisNumber... Axis>
  AxisList(Axis... axes) : Axes{detail::axis_number(axes)...} {}  // NOLINT: implicit by design
  template <std::ranges::contiguous_range Range>
  requires detail::Dimension<std::ranges::range_value_t<Range>> AxisList(
      const Range& axes) {  // NOLINT: implicit as well
    for (const auto axis : axes) push_back(detail::axis_number(axis));
  }
};

// Several arguments of one kind: a list in braces, or any contiguous range of them.
template <class T>
class ListOf : public std::span<const T> {
 public:
  using std::span<const T>::span;
  ListOf(std::span<const T> list) : std::span<const T>(list) {}  // NOLINT: implicit, as the others
  ListOf(std::initializer_list<T> list)
      : std::span<const T>(list.begin(), list.size()) {}  // NOLINT
};

// Declares that axes may stand for a function's options: sum(x, 1), sum(x, {0, 2}). sum(x, 1, true)
// keeps them, with size 1.
#define EBB_TAKES_AXES(function, Options)                                      \
  template <std::same_as<bool> Keep = bool>                                    \
  Tensor function(const Operand& x, const AxisList& axes, Keep keep = false) { \
    return function(x, Options{.axes = axes, .keep = keep});                   \
  }

// The `.axis` of options: one axis in place of a list in `.axes`, or none.
struct OneAxis {
  OneAxis() noexcept = default;
  OneAxis(detail::AxisNumber auto axis) : value(detail::axis_number(axis)) {}  // NOLINT: implicit
  std::optional<int> value;
};

// A number along the height and one along the width; a single one is both.
struct Size2d {
  std::int64_t height = 0, width = 0;

  constexpr Size2d(std::integral auto both) noexcept  // NOLINT: implicit by design
      : height(static_cast<std::int64_t>(both)), width(height) {}
  constexpr Size2d(std::int64_t along_height, std::int64_t along_width) noexcept
      : height(along_height), width(along_width) {}
};

}  // namespace ebb
