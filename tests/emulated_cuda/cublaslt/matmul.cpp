// cublasLtMatmul, with the checks that the library makes of its arguments.
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cublaslt/descriptors.h"
#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"
#include "ebb/tests/emulated_cuda/library_objects.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

struct cublasLtContext {
  int device;
};

namespace ebb::emulated {
namespace {

struct Problem {
  Operation operation;
  Layout a, b, c, d;
  std::uint64_t m = 0, n = 0, k = 0;
};

constexpr std::size_t kWorkspaceAlignment = 16, kAuxAlignment = 16, kAuxLdMultiple = 128;

std::size_t item_bytes(std::uint32_t type) { return type == CUDA_R_64F ? 8 : 4; }

bool has(const Operation& operation, std::uint32_t epilogue) {
  return (operation.epilogue & epilogue) != 0;
}
bool has_aux(const Operation& operation) { return has(operation, 128); }
bool is_gradient(const Operation& operation) { return has(operation, 8); }
// Where bias gradients are summed: over columns of d, or over the inner dimension.
bool sums_bias(const Operation& operation) {
  return has(operation, 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
}
bool has_vector(const Operation& operation) {
  return has(operation, CUBLASLT_EPILOGUE_BIAS) || sums_bias(operation);
}

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

bool is_sound(const Layout& layout) {
  const std::uint64_t least = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
  return layout.rows > 0 && layout.columns > 0 && layout.ld > 0 &&
         static_cast<std::uint64_t>(layout.ld) >= least && layout.batches > 0;
}

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

  const bool is_double = problem.a.type == CUDA_R_64F;
  const bool computes = is_double ? operation.compute == CUBLAS_COMPUTE_64F ||
                                        operation.compute == CUBLAS_COMPUTE_64F_PEDANTIC
                                  : problem.a.type == CUDA_R_32F &&
                                        (operation.compute == CUBLAS_COMPUTE_32F ||
                                         operation.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                                         operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
  if (!computes || operation.scale != static_cast<std::int32_t>(problem.a.type) ||
      operation.pointer_mode != CUBLASLT_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  // Epilogues are for column-major f32 results.
  if (!is_known_epilogue(operation.epilogue) || is_double || problem.d.order != CUBLASLT_ORDER_COL)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (has_vector(operation) &&
      (!operation.bias || reinterpret_cast<std::uintptr_t>(operation.bias) % 4 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (has_aux(operation) &&
      (!operation.aux || reinterpret_cast<std::uintptr_t>(operation.aux) % kAuxAlignment != 0 ||
       operation.aux_ld % static_cast<std::int64_t>(kAuxLdMultiple) != 0 ||
       static_cast<std::uint64_t>(operation.aux_ld) < m))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

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

struct Operands {
  const void *a, *b, *c;
  void *d, *workspace;
  std::size_t workspace_bytes;
  double alpha, beta;
};

template <class T>
T* resident(const void* address) {
  return static_cast<T*>(address_space().alias(address));
}

template <class T>
void run_batch(const Problem& problem, const Operands& operands, std::int64_t batch) {
  const Operation& operation = problem.operation;
  const auto m = static_cast<std::int64_t>(problem.m), n = static_cast<std::int64_t>(problem.n),
             k = static_cast<std::int64_t>(problem.k);
  const auto a = view(problem.a, resident<const T>(operands.a), operation.transpose_a, batch);
  const auto b = view(problem.b, resident<const T>(operands.b), operation.transpose_b, batch);
  const auto c = view(problem.c, resident<const T>(operands.c), CUBLAS_OP_N, batch);
  const auto d = view(problem.d, resident<T>(operands.d), CUBLAS_OP_N, batch);
  T* const vector = resident<T>(operation.bias) + batch * operation.bias_stride;
  auto* const mask = resident<unsigned char>(operation.aux) + batch * operation.aux_stride / 8;
  std::vector<T> product(static_cast<std::size_t>(m * n));
  multiply(m, n, k, a, b, product.data(),
           operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32);

  // Before d, which may be what they read from.
  std::vector<T> sums;
  if (has(operation, CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) {
    const bool of_a = has(operation, CUBLASLT_EPILOGUE_BGRADA);
    for (std::int64_t i = 0; i < (of_a ? m : n); ++i) {
      double sum = 0;
      for (std::int64_t inner = 0; inner < k; ++inner) sum += of_a ? a(i, inner) : b(inner, i);
      sums.push_back(static_cast<T>(sum));
    }
  } else if (sums_bias(operation)) {
    sums.assign(static_cast<std::size_t>(m), T{0});
  }

  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      T value =
          static_cast<T>(operands.alpha) * product[static_cast<std::size_t>(column * m + row)];
      if (operands.beta != 0) value += static_cast<T>(operands.beta) * c(row, column);
      if (has(operation, CUBLASLT_EPILOGUE_BIAS)) value += vector[row];
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
      d(row, column) = value;
    }
  std::copy(sums.begin(), sums.end(), vector);
}

Outcome run_product(const Problem& problem, const Operands& operands) {
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
    if (problem.d.type == CUDA_R_64F)
      run_batch<double>(problem, operands, batch);
    else
      run_batch<float>(problem, operands, batch);
  }
  return {};
}

bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

std::mutex handles_mutex;
std::set<const cublasLtContext*>& handles() {
  static auto* const all = new std::set<const cublasLtContext*>;
  return *all;
}
bool is_handle(cublasLtHandle_t handle) {
  const std::lock_guard lock(handles_mutex);
  return handles().count(handle) > 0;
}

// Long sums of small results are split, where there is room for the parts.
Algorithm choose(const Problem& problem, const Preference& preference) {
  constexpr std::uint64_t kLong = 256, kSmall = 1 << 16, kParts = 4;
  Algorithm chosen;
  chosen.mark = kAlgorithmMark;
  chosen.epilogue = problem.operation.epilogue;
  chosen.m = problem.m, chosen.n = problem.n, chosen.k = problem.k;
  std::copy(preference.alignment, preference.alignment + 4, chosen.alignment);
  const std::uint64_t parts = problem.m * problem.n * item_bytes(problem.d.type) * kParts;
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

size_t cublasLtGetVersion() {
  return CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
}
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_...";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device};
  const std::lock_guard lock(handles_mutex);
  handles().insert(*handle);
  ++library_objects;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const std::lock_guard lock(handles_mutex);
  if (handles().erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  --library_objects;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted <= 0 || !results || !found || !preference) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  Problem problem;
  if (const auto status = describe(desc, a, b, c, d, problem); status != CUBLAS_STATUS_SUCCESS)
    return status;
  const auto held = read<Preference>(preference);
  for (const std::uint32_t alignment : held.alignment)
    if (alignment < item_bytes(problem.d.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  const Algorithm chosen = choose(problem, held);
  write(&results[0].algo, chosen);
  results[0].workspaceSize = chosen.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!algorithm || !result) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  if (const auto status = describe(desc, a, b, c, d, problem); status != CUBLAS_STATUS_SUCCESS)
    return status;
  const auto chosen = read<Algorithm>(algorithm);
  if (chosen.mark != kAlgorithmMark || chosen.epilogue != problem.operation.epilogue)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {*algorithm, chosen.workspace_bytes, CUBLAS_STATUS_SUCCESS, 1, {}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  if (!algorithm || !value) return CUBLAS_STATUS_INVALID_VALUE;
  const auto chosen = read<Algorithm>(algorithm);
  std::int32_t number = 0;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) number = 1;
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
    number = static_cast<std::int32_t>(chosen.split);
  const bool is_short = attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                        attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  const std::size_t own = is_short ? sizeof(std::uint16_t) : sizeof(number);
  if (bytes != own) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, own);
  if (written) *written = own;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!alpha || !beta || !a || !b || !d) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  if (const auto status = describe(desc, a_layout, b_layout, c_layout, d_layout, problem);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  const bool is_double = problem.d.type == CUDA_R_64F;
  const auto factor = [&](const void* at) {
    return is_double ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
  };
  Operands operands = {a, b, c, d, workspace, 0, factor(alpha), factor(beta)};
  if (operands.beta != 0 && !c) return CUBLAS_STATUS_INVALID_VALUE;
  const auto chosen =
      algorithm ? read<Algorithm>(algorithm) : choose(problem, {.alignment = {4, 4, 4, 4}});
  if (chosen.mark != kAlgorithmMark || chosen.epilogue != problem.operation.epilogue ||
      chosen.m != problem.m || chosen.n != problem.n || chosen.k != problem.k)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const void* const matrices[4] = {a, b, operands.beta != 0 ? c : d, d};
  for (int i = 0; i < 4; ++i)
    if (!is_aligned(matrices[i], chosen.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (chosen.workspace_bytes > workspace_bytes ||
      (chosen.workspace_bytes > 0 && (!workspace || !is_aligned(workspace, kWorkspaceAlignment))))
    return CUBLAS_STATUS_INVALID_VALUE;
  operands.workspace_bytes = workspace ? workspace_bytes : 0;

  auto lock = machine().lock();
  ++machine().statistics.library_calls;
  if (const int wish = machine().injected(Fault::cublaslt); wish != 0)
    return static_cast<cublasStatus_t>(wish);
  if (machine().is_stream(stream) && stream->device != handle->device)
    return CUBLAS_STATUS_ARCH_MISMATCH;
  auto work = std::make_shared<FunctionWork>(
      Work::Kind::library, "cublasLtMatmul",
      [problem, operands] { return run_product(problem, operands); });
  const cudaError_t put = machine().put(lock, stream, std::move(work));
  return put == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
