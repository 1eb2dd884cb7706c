#pragma once
#include "ebb/core/dtype.h"

namespace ebb::cpu {

// Calls body with a value of the C++ type of a floating dtype. Shape rules let no other dtype
// through.
template <class Body>
inline void for_floating(DType type, const Body& body) {
  if (type == DType::f32) {
    body(float{});
  } else {
    body(double{});
  }
}

}  // namespace ebb::cpu
