#include "ebb/core/kernels/loss.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {

MemoryNeeds softmax_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr) : MemoryNeeds();
}

Status softmax(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, softmax);
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t classes = in.spec.shape[-1];
  if (out.elements() == 0) return {};
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = in.as<const T>();
    T* y = out.as<T>();
    for_pieces(out.elements() / classes, rows_per_piece(classes),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const T* scores = x + i * classes;
                   T* row = y + i * classes;
                   const T scale =
                       static_cast<T>(1 / exponentials<true>(scores, classes,
                                                             largest_score(scores, classes), row));
                   for (std::int64_t j = 0; j < classes; ++j) row[j] *= scale;
                 }
               });
  });
}

}  // namespace ebb::cpu
