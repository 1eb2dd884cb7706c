#pragma once
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/for_dtype.h"

namespace ebb::cuda {

// The type that values of type T are computed and summed in.
template <class T>
using Accumulate = std::conditional_t<kIsHalf<T>, float, T>;

}  // namespace ebb::cuda
