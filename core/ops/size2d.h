#pragma once
#include <concepts>
#include <cstdint>

namespace ebb {

// A number along the height and one along the width; a single one is both.
struct Size2d {
  std::int64_t height = 0, width = 0;

  constexpr Size2d(std::integral auto both) noexcept  // NOLINT: implicit by design
      : height(static_cast<std::int64_t>(both)), width(height) {}
  constexpr Size2d(std::int64_t along_height, std::int64_t along_width) noexcept
      : height(along_height), width(along_width) {}
};

}  // namespace ebb
