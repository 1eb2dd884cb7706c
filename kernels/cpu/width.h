#pragma once
#include <cstdint>
#include <type_traits>

namespace ebb::cpu {

// Calls body(width) with the width of a copy in bytes as a constant where it is a common one, else
// 0. A copy of known width is one load and one store.
template <class Body>
void with_width(std::int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 4:
      return body(std::integral_constant<int, 4>{});
    case 8:
      return body(std::integral_constant<int, 8>{});
    case 16:
      return body(std::integral_constant<int, 16>{});
    default:
      return body(std::integral_constant<int, 0>{});
  }
}

}  // namespace ebb::cpu
