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
  const std::int64_t last = (static_cast<std::int64_t>(layout.columns) - 1) * layout.ld +
                            (layout.batches - 1) * layout.batch_stride;
  return (static_cast<std::uint64_t>(last) + layout.rows) * item_bytes(layout.type);
}

template <class T>
MatrixView<T> view(const Layout& layout, T* data, std::int32_t transpose, std::int64_t batch) {
  data += batch * layout.batch_stride;
  if (transpose == CUBLAS_OP_N) return {data, 1, layout.ld};
  return {data, layout.ld, 1};
}

template <class T>
T* resident(const void* address) {
  return static_cast<T*>(address_space().alias(address));
}

// Sums of products. Where the split rounds its parts, each part is rounded to T before it is added.
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
  const auto d = view(problem.d, resident<T>(operands.d), CUBLAS_OP_N, batch);
  T* const vector = resident<T>(operation.bias);
  const std::vector<A> product = product_of<T>(problem, chosen, a, b);

  // Computed before d is written: d may overlap with a.
  std::vector<A> sums;
  if (has(operation, CUBLASLT_EPILOGUE_BGRADA))
    for (std::int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (std::int64_t inner = 0; inner < k; ++inner) sum += static_cast<A>(a(row, inner));
      sums.push_back(static_cast<A>(sum));
    }

  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      A value =
          static_cast<A>(operands.alpha) * product[static_cast<std::size_t>(column * m + row)];
      if (operands.beta != 0)
        value += static_cast<A>(operands.beta) * static_cast<A>(d(row, column));
      if (has(operation, CUBLASLT_EPILOGUE_BIAS)) value += static_cast<A>(vector[row]);
      if (has(operation, CUBLASLT_EPILOGUE_RELU) && value <= 0) value = 0;
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
  if (has_vector(operation)) parts.push_back({operation.bias, problem.m * item, "cuBLASLt: bias"});
  for (const DevicePart& part : parts)
    if (part.bytes > 0 && !address_space().holds(part.address))
      return {cudaErrorIllegalAddress, std::string(part.what) + " is no device memory"};
  if (Outcome bad = check_parts(parts); !bad.ok()) return bad;
  if (operands.workspace_bytes > 0)  // undefined after a call: filled with garbage
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
