#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "ebb/core/dtype.h"

namespace ebb {

// A dimension whose size is not known until a placeholder is fed.
inline constexpr std::int64_t kOpen = -1;
inline constexpr int kMaxRank = 6;

// The dimensions of a tensor, outermost first; up to kMaxRank of them, held in place. Dimensions
// are >= 0, or kOpen in a graph that has not been fed yet.
class Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws ShapeError for more than kMaxRank dimensions or one below kOpen.
  explicit Shape(std::span<const std::int64_t> dims);

  constexpr int rank() const noexcept { return rank_; }
  // axis may be negative, counting from the end; it must lie in [-rank, rank).
  constexpr std::int64_t operator[](int axis) const noexcept {
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
  // The number of elements; meaningless while a dimension is open.
  constexpr std::int64_t elements() const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[static_cast<std::size_t>(i)];
    return n;
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
  std::array<std::int64_t, kMaxRank> dims_{};
  std::int32_t rank_ = 0;
};

// What is known of a tensor without its values.
struct Spec {
  DType dtype = DType::f32;
  Shape shape;

  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  std::string to_string() const { return name(dtype) + shape.to_string(); }
  friend bool operator==(const Spec&, const Spec&) = default;
};

}  // namespace ebb
