#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/loss.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

void softmax(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t classes = in.spec.shape[-1];
  if (out.elements() == 0) return;
  for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = in.as<const T>();
    T* y = out.as<T>();
    for_pieces(out.elements() / classes, rows_per_piece(classes),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin * classes; row < end * classes; row += classes) {
                   const T shift = *std::max_element(x + row, x + row + classes);
                   double total = 0;
                   for (std::int64_t i = row; i < row + classes; ++i) {
                     y[i] = std::exp(x[i] - shift);
                     total += static_cast<double>(y[i]);
                   }
                   const T scale = static_cast<T>(1 / total);
                   for (std::int64_t i = row; i < row + classes; ++i) y[i] *= scale;
                 }
               });
  });
}

}  // namespace ebb::cpu
