// cublasLtMatmul, with the checks that the library makes of its arguments.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cublaslt/problem.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

struct cublasLtContext {
  ebb::emulated::OwnMemory memory;
};

namespace ebb::emulated {
namespace {

constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::size_t kHandleBytes = std::size_t{2} << 20;  // as on an H100

bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

// Algorithms that the heuristic offers at most. Products of some sizes have but one.
int offers(const Problem& problem) { return 1 + static_cast<int>((problem.m + problem.n) % 4); }
// Deliberately the harder case: for some sizes the first one is refused when it is launched.
bool is_refused(const Problem& problem, const Algorithm& chosen) {
  return chosen.rank == 0 && problem.k % 5 == 2;
}

// Splits long sums of small results, if the workspace has room for the parts.
Algorithm choose(const Problem& problem, const Preference& preference, int rank) {
  constexpr std::uint64_t kLong = 256, kSmall = 1 << 16, kParts = 4;
  Algorithm chosen = {};
  chosen.split = 1;
  chosen.rank = static_cast<std::uint16_t>(rank);
  chosen.mark = kAlgorithmMark;
  chosen.epilogue = problem.operation.epilogue;
  chosen.m = problem.m, chosen.n = problem.n, chosen.k = problem.k;
  std::copy(preference.alignment, preference.alignment + 4, chosen.alignment);
  chosen.vector_alignment =
      has_vector(problem.operation) ? alignment_of(problem.operation.bias) : 1;
  // Deliberately the harder case: rounds parts to the result's type unless the preference forbids
  // it.
  chosen.rounds_parts =
      is_half(problem.d.type) && preference.reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const std::uint64_t item = chosen.rounds_parts ? 2 : problem.d.type == CUDA_R_64F ? 8 : 4;
  const std::uint64_t parts = problem.m * problem.n * item * kParts;
  if (problem.k >= kLong && problem.m * problem.n <= kSmall &&
      parts <= preference.workspace_bytes) {
    chosen.split = kParts;
    chosen.workspace_bytes = parts;
  }
  return chosen;
}

}  // namespace
}  // namespace ebb::emulated

using namespace ebb::emulated;

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "CUBLAS_STATUS_..."; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (const auto lock = machine().lock(); machine().injected(Fault::create_cublaslt) != cudaSuccess)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  auto made = std::make_unique<cublasLtContext>();
  if (!made->memory.take(kHandleBytes)) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = made.release();
  ++machine().library_objects;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  --machine().library_objects;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted <= 0 || !results || !found || !preference) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  Problem problem;
  if (const auto status = describe(desc, a, b, c, d, problem); status != CUBLAS_STATUS_SUCCESS)
    return status;
  for (const std::uint32_t alignment : preference->alignment)
    if (alignment < item_bytes(problem.d.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *found < std::min(wanted, offers(problem)); ++*found) {
    cublasLtMatmulHeuristicResult_t& result = results[*found];
    result = {};
    result.algo = choose(problem, *preference, *found);
    result.workspaceSize = result.algo.workspace_bytes;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  if (!algorithm || !value) return CUBLAS_STATUS_INVALID_VALUE;
  std::int32_t number = 0;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) number = 1;
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) number = algorithm->split;
  if (bytes != sizeof(number)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, sizeof(number));
  if (written) *written = sizeof(number);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!alpha || !beta || !a || !b || !d || c != d || !algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  if (const auto status = describe(desc, a_layout, b_layout, c_layout, d_layout, problem);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  const bool is_double = problem.d.type == CUDA_R_64F;
  const auto factor = [&](const void* at) {
    return is_double ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
  };
  const Operands operands = {
      a, b, d, workspace, workspace ? workspace_bytes : 0, factor(alpha), factor(beta)};
  const Algorithm chosen = *algorithm;
  if (chosen.mark != kAlgorithmMark || chosen.epilogue != problem.operation.epilogue ||
      chosen.m != problem.m || chosen.n != problem.n || chosen.k != problem.k)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (is_refused(problem, chosen)) {
    static_cast<void>(answer(cudaErrorInvalidValue));
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const void* const matrices[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (!is_aligned(matrices[i], chosen.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (has_vector(problem.operation) && !is_aligned(problem.operation.bias, chosen.vector_alignment))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (chosen.workspace_bytes > workspace_bytes ||
      (chosen.workspace_bytes > 0 && (!workspace || !is_aligned(workspace, kWorkspaceAlignment))))
    return CUBLAS_STATUS_INVALID_VALUE;

  auto lock = machine().lock();
  ++machine().statistics.library_calls;
  if (const int wish = machine().injected(Fault::cublaslt); wish != 0)
    return static_cast<cublasStatus_t>(wish);
  auto work = std::make_shared<FunctionWork>("cublasLtMatmul", [problem, chosen, operands] {
    return run_product(problem, chosen, operands);
  });
  const cudaError_t put = machine().put(lock, stream, std::move(work));
  return put == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
