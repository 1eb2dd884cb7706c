#include <algorithm>
#include <string>
#include <vector>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"
#include "ebb/tests/emulated_cuda/cublaslt/problem.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

std::uint64_t bytes_of(const Layout& layout) {
  const std::uint64_t lines = layout.order == CUBLASLT_ORDER_COL ? layout.columns : layout.rows;
  const std::uint64_t last = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
  return ((lines - 1) * static_cast<std::uint64_t>(layout.ld) + last +
          static_cast<std::uint64_t>(layout.batches - 1) *
              static_cast<std::uint64_t>(layout.batch_stride)) *
         item_bytes(layout.type);
}

template <class T>
MatrixView<T> view(const Layout& layout, T* data, std::int32_t transpose, std::int64_t batch) {
  std::int64_t row = layout.order == CUBLASLT_ORDER_COL ? 1 : layout.ld;
  std::int64_t column = layout.order == CUBLASLT_ORDER_COL ? layout.ld : 1;
  if (transpose != CUBLAS_OP_N) std::swap(row, column);
  return {data + batch * layout.batch_stride, row, column};
}

template <class T>
T* resident(const void* address) {
  return static_cast<T*>(address_space().alias(address));
}

// The sums of products, in parts where they are split.
template <class T>
std::vector<Sum<T>> product_of(const Problem& problem, const Algorithm& chosen,
                               MatrixView<const T> a, MatrixView<const T> b) {
  const auto m = static_cast<std::int64_t>(problem.m), n = static_cast<std::int64_t>(problem.n),
             k = static_cast<std::int64_t>(problem.k);
  const bool in_tf32 = problem.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::int64_t parts = chosen.rounds_parts ? chosen.split : 1;
  std::vector<Sum<T>> total(static_cast<std::size_t>(m * n)), part(total.size());
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = k * i / parts, end = k * (i + 1) / parts;
    multiply<T>(m, n, end - begin, {a.data + begin * a.column_step, a.row_step, a.column_step},
                {b.data + begin * b.row_step, b.row_step, b.column_step},
                parts == 1 ? total.data() : part.data(), in_tf32);
    if (parts > 1)
      for (std::size_t j = 0; j < total.size(); ++j)
        total[j] += static_cast<Sum<T>>(static_cast<T>(part[j]));
  }
  return total;
}

template <class T>
void run_batch(const Problem& problem, const Algorithm& chosen, const Operands& operands,
               std::int64_t batch) {
  using A = Sum<T>;
  const Operation& operation = problem.operation;
  const auto m = static_cast<std::int64_t>(problem.m), n = static_cast<std::int64_t>(problem.n),
             k = static_cast<std::int64_t>(problem.k);
  const auto a = view(problem.a, resident<const T>(operands.a), operation.transpose_a, batch);
  const auto b = view(problem.b, resident<const T>(operands.b), operation.transpose_b, batch);
  const auto c = view(problem.c, resident<const T>(operands.c), CUBLAS_OP_N, batch);
  const auto d = view(problem.d, resident<T>(operands.d), CUBLAS_OP_N, batch);
  T* const vector = resident<T>(operation.bias) + batch * operation.bias_stride;
  auto* const mask = resident<unsigned char>(operation.aux) + batch * operation.aux_stride / 8;
  const std::vector<A> product = product_of<T>(problem, chosen, a, b);

  // Before d, which may be what they read from.
  std::vector<A> sums;
  if (has(operation, CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) {
    const bool of_a = has(operation, CUBLASLT_EPILOGUE_BGRADA);
    for (std::int64_t i = 0; i < (of_a ? m : n); ++i) {
      double sum = 0;
      for (std::int64_t inner = 0; inner < k; ++inner)
        sum += static_cast<A>(of_a ? a(i, inner) : b(inner, i));
      sums.push_back(static_cast<A>(sum));
    }
  } else if (sums_bias(operation)) {
    sums.assign(static_cast<std::size_t>(m), A{0});
  }

  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      A value =
          static_cast<A>(operands.alpha) * product[static_cast<std::size_t>(column * m + row)];
      if (operands.beta != 0)
        value += static_cast<A>(operands.beta) * static_cast<A>(c(row, column));
      if (has(operation, CUBLASLT_EPILOGUE_BIAS)) value += static_cast<A>(vector[row]);
      const std::int64_t bit = column * operation.aux_ld + row;
      const auto flag = static_cast<unsigned char>(1u << (bit % 8));
      if (is_gradient(operation)) {
        if (!(mask[bit / 8] & flag)) value = 0;
        if (sums_bias(operation)) sums[static_cast<std::size_t>(row)] += value;
      } else if (has(operation, CUBLASLT_EPILOGUE_RELU)) {
        const bool passes = !(value <= 0);
        if (has_aux(operation))
          mask[bit / 8] =
              static_cast<unsigned char>(passes ? mask[bit / 8] | flag : mask[bit / 8] & ~flag);
        if (!passes) value = 0;
      }
      d(row, column) = static_cast<T>(value);
    }
  std::transform(sums.begin(), sums.end(), vector, [](A sum) { return static_cast<T>(sum); });
}

}  // namespace

Outcome run_product(const Problem& problem, const Algorithm& chosen, const Operands& operands) {
  const Operation& operation = problem.operation;
  const std::size_t item = item_bytes(problem.d.type);
  std::vector<DevicePart> parts = {
      {operands.a, bytes_of(problem.a), "cuBLASLt: a"},
      {operands.b, bytes_of(problem.b), "cuBLASLt: b"},
      {operands.d, bytes_of(problem.d), "cuBLASLt: d"},
      {operands.workspace, operands.workspace_bytes, "cuBLASLt: workspace"}};
  if (operands.beta != 0) parts.push_back({operands.c, bytes_of(problem.c), "cuBLASLt: c"});
  if (has_vector(operation)) {
    const std::uint64_t length = has(operation, CUBLASLT_EPILOGUE_BGRADB) ? problem.n : problem.m;
    parts.push_back({operation.bias, length * item, "cuBLASLt: bias"});
  }
  if (has_aux(operation))
    parts.push_back({operation.aux, static_cast<std::size_t>(operation.aux_ld) / 8 * problem.n,
                     "cuBLASLt: auxiliary"});
  for (const DevicePart& part : parts)
    if (part.bytes > 0 && !address_space().holds(part.address))
      return {cudaErrorIllegalAddress, std::string(part.what) + " is no device memory"};
  if (Outcome bad = check_parts(parts); !bad.ok()) return bad;
  if (operands.workspace_bytes > 0)  // it may hold anything afterwards
    std::fill_n(resident<unsigned char>(operands.workspace), operands.workspace_bytes, 0xFF);
  for (std::int64_t batch = 0; batch < problem.a.batches; ++batch) {
    const auto run = [&]<class T>(T) { run_batch<T>(problem, chosen, operands, batch); };
    switch (problem.d.type) {
      case CUDA_R_64F:
        run(double{});
        break;
      case CUDA_R_16F:
        run(Float16{});
        break;
      case CUDA_R_16BF:
        run(BFloat16{});
        break;
      default:
        run(float{});
    }
  }
  return {};
}

}  // namespace ebb::emulated
