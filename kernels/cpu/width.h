#pragma once
#include <cstdint>
#include <type_traits>

namespace ebb::cpu {

// Calls body(width) with the bytes of a copy as a constant where they are a common number of them,
// 0 for any other: with the width known a copy is one load and one store.
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
