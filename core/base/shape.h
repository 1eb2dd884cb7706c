// Shapes. Every file that nvcc compiles reads this header, so it includes little.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>  // also declares std::string
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "ebb/core/base/call_site.h"
#include "ebb/core/base/dtype.h"

namespace ebb {

// A dimension whose size is not known until a placeholder is fed.
inline constexpr std::int64_t kOpen = -1;
inline constexpr int kMaxRank = 6;
// Maximum for one tensor. More than any machine addresses, and small enough that no size computed
// from it overflows, in bytes or summed over a program.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

namespace detail {
// An axis with the user's source line: operator[] cannot take a second argument.
struct AxisAt {
  constexpr AxisAt(int index, CallSite at = CallSite::caller()) noexcept  // NOLINT: implicit
      : axis(index), site(at) {}
  int axis;
  CallSite site;
};

// Types of a dimension: integers, but not bool or characters.
template <class T>
concept Dimension = std::integral<T> && sizeof(T) >= sizeof(int) && !std::same_as<T, wchar_t> &&
                    !std::same_as<T, char32_t>;
// Sequences of integers: std::vector, std::array, std::span.
template <class T>
concept Dimensions = requires(const T& row) {
  requires Dimension<std::remove_cvref_t<decltype(*std::data(row))>>;
  std::size(row);
};
constexpr std::int64_t to_dimension(Dimension auto size) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return std::in_range<std::int64_t>(size) ? static_cast<std::int64_t>(size) : most;
}
}  // namespace detail

// The dimensions of a tensor, outermost first; up to kMaxRank of them, held in place. Each is >= 0,
// or kOpen in a graph that has not been fed yet.
//
// Programs that ask for a size need a number, so [] and elements() throw if it is still open. Shape
// rules pass open dimensions on and use dim().
class Shape {
 public:
  constexpr Shape() = default;
  // All throw ShapeError for more than kMaxRank dimensions or one below kOpen.
  Shape(std::initializer_list<std::int64_t> dims, CallSite site = CallSite::caller())
      : Shape(std::span(dims.begin(), dims.size()), site) {}
  explicit Shape(std::span<const std::int64_t> dims, CallSite site = {});
  // From a sequence of integers: zeros(std::vector{2, 3}).
  template <detail::Dimensions Dims>
  Shape(const Dims& dims, CallSite site = CallSite::caller()) {  // NOLINT: implicit, as in braces
    for (const auto size : dims) append(detail::to_dimension(size), site);
  }

  constexpr int rank() const noexcept { return rank_; }
  // Size along an axis; negative axes count from the end. Throws ShapeError if the axis does not
  // exist or is open; size(x, axis) gives that size as a tensor.
  constexpr std::int64_t operator[](detail::AxisAt at) const {
    if (at.axis < -rank_ || at.axis >= rank_ || dim(at.axis) == kOpen) throw_no_size(at);
    return dim(at.axis);
  }
  // Size along an axis, or kOpen; axis must lie in [-rank, rank).
  constexpr std::int64_t dim(int axis) const noexcept {
    return dims_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)];
  }
  constexpr void set(int axis, std::int64_t size) noexcept {
    dims_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)] = size;
  }
  void push_back(std::int64_t size);

  std::span<const std::int64_t> dims() const noexcept {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }

  constexpr bool is_open() const noexcept {
    for (int i = 0; i < rank_; ++i)
      if (dims_[static_cast<std::size_t>(i)] == kOpen) return true;
    return false;
  }
  // Whether the product of the known dimensions, without zeros, is at most kMaxElements.
  constexpr bool is_countable() const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i)
      if (dim(i) > 0 && !multiply(n, dim(i))) return false;
    return true;
  }
  // The number of elements. Throws ShapeError while a dimension is open, and beyond kMaxElements.
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < rank_; ++i) {
      const std::int64_t size = dims_[static_cast<std::size_t>(i)];
      empty |= size == 0;
      if (size < 0 || (size > 0 && !multiply(n, size))) throw_no_elements();
    }
    return empty ? 0 : n;
  }
  // "[32, -1, 4]"; an open dimension prints as "?".
  std::string to_string() const;

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[static_cast<std::size_t>(i)] != b.dims_[static_cast<std::size_t>(i)])
        return false;
    return true;
  }

 private:
  void append(std::int64_t size, CallSite site);
  // Sets n *= size; false beyond kMaxElements.
  static constexpr bool multiply(std::int64_t& n, std::int64_t size) noexcept {
    return !__builtin_mul_overflow(n, size, &n) && n <= kMaxElements;
  }
  [[noreturn]] void throw_no_size(detail::AxisAt at) const;
  [[noreturn]] void throw_no_elements() const;

  std::array<std::int64_t, kMaxRank> dims_{};
  std::int32_t rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

namespace detail {
// For a message: "the shape [4294967296, 4294967296] has more elements than a tensor can have".
std::string too_large(const Shape& shape);
}  // namespace detail

// Shape and dtype of a tensor.
struct Spec {
  DType dtype = DType::f32;
  Shape shape;

  // Throws as Shape::elements does.
  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  std::string to_string() const;
  friend bool operator==(const Spec&, const Spec&) = default;
};

}  // namespace ebb
