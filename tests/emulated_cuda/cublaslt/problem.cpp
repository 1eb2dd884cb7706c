#include "ebb/tests/emulated_cuda/cublaslt/problem.h"

#include <utility>

#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {
namespace {

constexpr std::size_t kAuxAlignment = 16, kAuxLdMultiple = 128;

bool is_known_epilogue(std::uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
    default:
      return false;
  }
}

// The rows of cublasLtMatmul's table with one type for all matrices.
bool is_supported(const Operation& operation, std::uint32_t type) {
  const auto scale = static_cast<std::uint32_t>(operation.scale);
  const std::int32_t compute = operation.compute;
  switch (type) {
    case CUDA_R_64F:
      return scale == type &&
             (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC);
    case CUDA_R_16BF:
      if (machine().capability < 80) return false;
      [[fallthrough]];
    case CUDA_R_16F:
      return scale == CUDA_R_32F &&
             (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC);
    case CUDA_R_32F:
      return scale == type &&
             (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
              compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    default:
      return false;
  }
}

bool is_sound(const Layout& layout) {
  const std::uint64_t least = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
  return layout.rows > 0 && layout.columns > 0 && layout.ld > 0 &&
         static_cast<std::uint64_t>(layout.ld) >= least && layout.batches > 0;
}

}  // namespace

cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d, Problem& problem) {
  if (!desc || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  problem = {read<Operation>(desc), read<Layout>(a), read<Layout>(b), read<Layout>(c),
             read<Layout>(d)};
  const Operation& operation = problem.operation;
  for (const Layout* layout : {&problem.a, &problem.b, &problem.c, &problem.d})
    if (!is_sound(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto shape = [](const Layout& layout, std::int32_t transpose) {
    return transpose == CUBLAS_OP_N ? std::pair(layout.rows, layout.columns)
                                    : std::pair(layout.columns, layout.rows);
  };
  const auto [m, k] = shape(problem.a, operation.transpose_a);
  const auto [inner, n] = shape(problem.b, operation.transpose_b);
  if (k != inner || problem.d.rows != m || problem.d.columns != n || problem.c.rows != m ||
      problem.c.columns != n || operation.transpose_c != CUBLAS_OP_N)
    return CUBLAS_STATUS_INVALID_VALUE;
  problem.m = m, problem.n = n, problem.k = k;
  for (const Layout* layout : {&problem.b, &problem.c, &problem.d})
    if (layout->type != problem.a.type || layout->batches != problem.a.batches)
      return CUBLAS_STATUS_INVALID_VALUE;

  const std::uint32_t type = problem.a.type;
  if (!is_supported(operation, type) || operation.pointer_mode != CUBLASLT_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  // Epilogues are for column-major results that are not f64, and biases have their type. What is
  // auxiliary to a ReLU is bits, which have none.
  if (!is_known_epilogue(operation.epilogue) || type == CUDA_R_64F ||
      problem.d.order != CUBLASLT_ORDER_COL)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((operation.bias_type != -1 && operation.bias_type != static_cast<std::int32_t>(type)) ||
      operation.aux_type != -1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (has_vector(operation) && (!operation.bias || alignment_of(operation.bias) < item_bytes(type)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (has_aux(operation) &&
      (!operation.aux || reinterpret_cast<std::uintptr_t>(operation.aux) % kAuxAlignment != 0 ||
       operation.aux_ld % static_cast<std::int64_t>(kAuxLdMultiple) != 0 ||
       static_cast<std::uint64_t>(operation.aux_ld) < m))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace ebb::emulated
