#include "ebb/kernels/cuda/column_sum.h"

#include "ebb/kernels/cuda/sum_columns.h"

namespace ebb::cuda {
namespace {

template <class Index, class In, class Out>
Status sum_matrix(cudaStream_t stream, const In* in, const SumTarget<Out>& target,
                  std::int64_t columns, int width) noexcept {
  Columns<Index> shape{.outer = {}, .rows = {}, .matrices = 1, .columns = columns};
  shape.rows.add(target.terms, {columns});
  return sum_columns(stream, in, target, shape, width);
}

}  // namespace

template <class T>
Status column_sum(cudaStream_t stream, const T* in, T* out, std::int64_t rows, std::int64_t columns,
                  void* workspace) noexcept {
  if (columns == 0) return {};
  const SumPlan plan = plan_columns(1, rows, columns);
  const SumTarget<T> target(plan, out, 1, workspace);
  return with_index(rows * columns, [&]<class Index>(Index) {
    return sum_matrix<Index>(stream, in, target, columns, plan.threads);
  });
}

template <class T>
Status add_parts(cudaStream_t stream, const double* partial, T* out, std::int64_t parts,
                 std::int64_t results, double divisor) noexcept {
  SumPlan plan = plan_columns(1, parts, results);
  plan.parts = 1;
  plan.part = parts;
  return sum_matrix<std::uint32_t>(stream, partial, SumTarget<T>(plan, out, divisor, nullptr),
                                   results, plan.threads);
}

#define EBB_COLUMN_SUM(T)                                                                \
  template Status column_sum(cudaStream_t, const T*, T*, std::int64_t, std::int64_t,     \
                             void*) noexcept;                                            \
  template Status add_parts(cudaStream_t, const double*, T*, std::int64_t, std::int64_t, \
                            double) noexcept;
EBB_COLUMN_SUM(float)
EBB_COLUMN_SUM(double)
EBB_COLUMN_SUM(Float16)
EBB_COLUMN_SUM(BFloat16)
#undef EBB_COLUMN_SUM

}  // namespace ebb::cuda
