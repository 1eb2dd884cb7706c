#pragma once
#include <type_traits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {

// Calls body(P{}, S{}, G{}) for the dtypes of parameter, state and gradient that an update takes:
// f32 or f64 each, or a parameter of 16 bits beside f32 state and a gradient of either dtype.
template <class Body>
inline Status for_update(DType parameter, DType state, DType gradient, const Body& body) {
  if (!is_half(parameter)) return for_floating(parameter, state, gradient, body);
  if (state != DType::f32 || (gradient != DType::f32 && gradient != parameter))
    return kUnsupportedDType;
  return for_stored(parameter, [&](auto p) {
    if constexpr (kIsHalf<decltype(p)>) {
      if (gradient == parameter)
        body(p, float{}, p);
      else
        body(p, float{}, float{});
    }
  });
}

// What they are computed in.
template <class P, class S, class G>
using UpdateComputed = std::common_type_t<Computed<P>, S, Computed<G>>;

}  // namespace ebb::cpu
