#include "ebb/optim/kernels/accumulator.h"

#include <type_traits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

Status accumulate(const KernelContext& context) {
  const Buffer &sum = context.inputs[0], &g = context.inputs[1];
  return for_floating(sum.spec.dtype, g.spec.dtype, [&](auto sum_type, auto gradient_type) {
    using S = decltype(sum_type);
    using G = decltype(gradient_type);
    using T = std::common_type_t<S, G>;
    const T rows = static_cast<T>(*context.inputs[2].as<const std::int64_t>());
    S* const to = sum.as<S>();
    const G* const from = g.as<const G>();
    for_pieces(sum.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = static_cast<S>(static_cast<T>(to[i]) + rows * static_cast<T>(from[i]));
    });
  });
}

}  // namespace ebb::cpu
