#include <algorithm>
#include <functional>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/kernels/cpu/fold.h"

namespace ebb::cpu {

// In sequence: side by side, large and small factors in turns would overflow and underflow before
// they meet.
Status prod(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    const T* const from = in.as<const T>();
    T* const to = out.as<T>();
    const MergedAxes axes(in.spec.shape, context.attribute<StatisticAttributes>().axes);
    if (count == 0) {
      std::fill_n(to, results, T(1));
    } else if (axes.reduces_all()) {
      double* const partial = static_cast<double*>(context.workspace);
      for_pieces(count, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
        partial[begin / kPieceElements] =
            fold_run(from + begin, end - begin, 1.0, std::multiplies<>());
      });
      *to = static_cast<T>(
          fold_run(partial, divide_up(count, kPieceElements), 1.0, std::multiplies<>()));
    } else {
      fold<64>(from, axes, 1.0, std::multiplies<>(),
               [to](std::int64_t i, double product) { to[i] = static_cast<T>(product); });
    }
  });
}

MemoryNeeds prod_memory(const MemoryQuery& query) {
  return needs_of_pieces(query.inputs[0].shape, query.attribute<StatisticAttributes>().axes,
                         kPieceElements, sizeof(double));
}

}  // namespace ebb::cpu
