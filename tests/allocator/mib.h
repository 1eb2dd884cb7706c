#pragma once
#include <cstddef>

namespace ebb::tests {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace ebb::tests
