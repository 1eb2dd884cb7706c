#pragma once
#include <concepts>
#include <limits>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "ebb/core/base/inline_vector.h"
#include "ebb/core/base/shape.h"

namespace ebb {

// Axes of a tensor, by number; a negative one counts from the end.
using Axes = InlineVector<int, kMaxRank>;

namespace detail {
// An axis in a call that takes options as well; an enumerator counts too. A bool does not: it is
// meant as an option.
template <class T>
concept AxisNumber = (std::integral<T> || std::is_enum_v<T>)&&std::convertible_to<T, int> &&
                     !std::same_as<T, bool>;
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
  AxisList(Axis... axes) : Axes{static_cast<int>(axes)...} {}  // NOLINT: implicit by design
  template <std::ranges::contiguous_range Range>
  requires detail::Dimension<std::ranges::range_value_t<Range>> AxisList(
      const Range& axes) {                                 // NOLINT: implicit as well
    constexpr int most = std::numeric_limits<int>::max();  // no tensor has such an axis
    for (const auto axis : axes)
      push_back(std::in_range<int>(axis) ? static_cast<int>(axis) : most);
  }
};

// The `.axis` of options: one axis in place of a list in `.axes`, or none.
struct OneAxis {
  OneAxis() noexcept = default;
  OneAxis(detail::AxisNumber auto axis) : value(static_cast<int>(axis)) {}  // NOLINT: implicit
  std::optional<int> value;
};

}  // namespace ebb
