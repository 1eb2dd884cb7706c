#include "ebb/tests/emulated_cuda/cublaslt/problem.h"

#include <utility>

#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {
namespace {

// The rows of cublasLtMatmul's table of types in which all matrices have one type.
bool is_supported(const Operation& operation, cudaDataType_t type) {
  const auto [scale, compute] = std::pair(operation.scale, operation.compute);
  switch (type) {
    case CUDA_R_64F:
      return scale == type && compute == CUBLAS_COMPUTE_64F;
    case CUDA_R_16BF:
      if (machine().capability < 80) return false;
      [[fallthrough]];
    case CUDA_R_16F:
      return scale == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F;
    case CUDA_R_32F:
      return scale == type &&
             (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    default:
      return false;
  }
}

bool is_sound(const Layout& layout) {
  return layout.rows > 0 && layout.columns > 0 && layout.batches > 0 &&
         layout.ld >= static_cast<std::int64_t>(layout.rows);
}

}  // namespace

cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d, Problem& problem) {
  if (!desc || !a || !b || !d || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  problem = {*desc, *a, *b, *d};
  const Operation& operation = problem.operation;
  for (const Layout* layout : {&problem.a, &problem.b, &problem.d})
    if (!is_sound(*layout) || layout->type != problem.a.type ||
        layout->batches != problem.a.batches)
      return CUBLAS_STATUS_INVALID_VALUE;
  const auto shape = [](const Layout& layout, std::int32_t transpose) {
    return transpose == CUBLAS_OP_N ? std::pair(layout.rows, layout.columns)
                                    : std::pair(layout.columns, layout.rows);
  };
  const auto [m, k] = shape(problem.a, operation.transpose_a);
  const auto [inner, n] = shape(problem.b, operation.transpose_b);
  if (k != inner || problem.d.rows != m || problem.d.columns != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  problem.m = m, problem.n = n, problem.k = k;

  const cudaDataType_t type = problem.a.type;
  if (!is_supported(operation, type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  if (type == CUDA_R_64F) return CUBLAS_STATUS_NOT_SUPPORTED;  // f64 has no epilogues
  // Sums over the inner dimension go along the rows of a that is not transposed.
  if (has(operation, CUBLASLT_EPILOGUE_BGRADA) && operation.transpose_a != CUBLAS_OP_N)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (has_vector(operation) && (!operation.bias || alignment_of(operation.bias) < item_bytes(type)))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace ebb::emulated
