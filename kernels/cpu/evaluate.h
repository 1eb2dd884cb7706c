#pragma once
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {

// Whether scalars give the same bits as blocks (core/kernels/functors/host_device.h).
template <class F>
inline constexpr bool kExact = requires {
  requires F::exact;
};

template <class F, class T, class... Others>
inline Block<T> evaluate(const F& f, const Block<T>& x, const Others&... others) noexcept {
  if constexpr (kExact<F>) {
    return Block<T>::each(f, x, others...);
  } else {
    return f(x, others...);
  }
}

}  // namespace ebb::cpu
