#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ebb::cpu {

// With the common widths known, a copy is one load and one store.
template <class Body>
void with_width(std::int64_t bytes, const Body& body) {
  switch (bytes) {
    case 4:
      return body(std::integral_constant<std::size_t, 4>{});
    case 8:
      return body(std::integral_constant<std::size_t, 8>{});
    default:
      return body(static_cast<std::size_t>(bytes));
  }
}

}  // namespace ebb::cpu
