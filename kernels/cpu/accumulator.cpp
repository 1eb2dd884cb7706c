#include "ebb/optim/kernels/accumulator.h"

#include <type_traits>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {

Status accumulate(const KernelContext& context) {
  const Buffer &sum = context.inputs[0], &g = context.inputs[1];
  return for_floating(g.spec.dtype, [&]<class G>(G) {
    return for_wide(sum.spec.dtype, [&]<class S>(S) {
      using T = std::common_type_t<S, Computed<G>>;
      const T rows = static_cast<T>(*context.inputs[2].as<const std::int64_t>());
      if (rows == 0) return;  // the mean of nothing is NaN
      S* const to = sum.as<S>();
      const G* const from = g.as<const G>();
      for_pieces(sum.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
        for_computed(from, to, begin, end,
                     [=](const auto* x, auto* y, std::int64_t, std::int64_t count) {
                       for (std::int64_t i = 0; i < count; ++i)
                         y[i] = static_cast<S>(static_cast<T>(y[i]) + rows * static_cast<T>(x[i]));
                     });
      });
    });
  });
}

}  // namespace ebb::cpu
