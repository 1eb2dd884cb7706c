#include "ebb/kernels/cuda/runtime/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <mutex>

namespace ebb::cuda {
namespace {

[[maybe_unused]] constexpr const char* kCublasLt = "EBB_CUBLASLT_LIBRARY";
[[maybe_unused]] constexpr const char* kCudnn = "EBB_CUDNN_LIBRARY";
[[maybe_unused]] constexpr const char* kNvrtc = "EBB_NVRTC_LIBRARY";
[[maybe_unused]] constexpr const char* kNccl = "EBB_NCCL_LIBRARY";

using Warn = void(const std::string& text);
constinit Warn* warn = nullptr;

// The file that the variable names, or null.
const char* chosen_file(const char* variable) noexcept {
  const char* const file = std::getenv(variable);
  return file && *file ? file : nullptr;
}

// Loads a library and never closes it: its threads may run until the process ends.
void* open(const char* variable, std::initializer_list<const char*> names) noexcept {
  const auto load = [](const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL); };
  if (const char* const chosen = chosen_file(variable)) return load(chosen);
  for (const char* name : names)
    if (void* library = load(name)) return library;
  return nullptr;
}

// Explains why the file that the environment names cannot be used.
std::string why_not(const char* variable) {
  const char* const file = chosen_file(variable);
  const char* const reason =
      ::dlopen(file, RTLD_NOW | RTLD_LOCAL) ? "it lacks functions that ebb calls" : ::dlerror();
  return std::string(variable) + " names " + file + ", which cannot be used: " + reason;
}

template <class Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

#define EBB_FIND(name) is_whole = is_whole && find(library, #name, table.name);
// Defines function(), which finds all FUNCTIONS of a library. Behind them, the arguments of open().
#define EBB_LIBRARY(Table, function, FUNCTIONS, ...) \
  const Table* function() noexcept {                 \
    static Table table;                              \
    static const bool is_there = [] {                \
      void* const library = open(__VA_ARGS__);       \
      bool is_whole = library != nullptr;            \
      FUNCTIONS(EBB_FIND)                            \
      return is_whole;                               \
    }();                                             \
    return is_there ? &table : nullptr;              \
  }

// The handles' get() tries again after a failure: the device may just have been short of memory.

#if EBB_HAS_CUBLASLT
namespace {
constexpr bool kIs13 = CUDART_VERSION >= 13000;
EBB_LIBRARY(CublasLt, toolkits_cublas_lt, EBB_CUBLASLT_FUNCTIONS, kCublasLt,
            {kIs13 ? "libcublasLt.so.13" : "libcublasLt.so.12"})
EBB_LIBRARY(CublasLt, other_cublas_lt, EBB_CUBLASLT_FUNCTIONS, kCublasLt,
            {kIs13 ? "libcublasLt.so.12" : "libcublasLt.so.13"})

// The version that has started on a device. All devices use it from then on.
constinit std::atomic<const CublasLt*> started = nullptr;
}  // namespace

const CublasLt* cublas_lt() noexcept {
  if (const CublasLt* const library = started) return library;
  const CublasLt* const library = toolkits_cublas_lt();
  return library ? library : other_cublas_lt();
}

CublasLtHandle::~CublasLtHandle() {
  if (handle_) static_cast<void>(cublas_lt()->cublasLtDestroy(handle_));
}

cublasLtHandle_t CublasLtHandle::get(const char*& problem) noexcept {
  if (const cublasLtHandle_t handle = handle_) return handle;
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t handle = handle_;
  if (handle) return handle;
  problem = "cuBLASLt was not found (EBB_CUBLASLT_LIBRARY may name its file)";
  for (const auto find_version : {toolkits_cublas_lt, other_cublas_lt}) {
    const CublasLt* const library = find_version();
    if (!library || (started && started != library)) continue;
    if (library->cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS) {
      started = library;
      return handle_ = handle;
    }
    static_cast<void>(cudaGetLastError());
    problem = "cuBLASLt does not start on this device";
  }
  return nullptr;
}
#endif

#if EBB_HAS_CUDNN
EBB_LIBRARY(Cudnn, cudnn, EBB_CUDNN_FUNCTIONS, kCudnn, {"libcudnn.so.9"})

cudnnDataType_t cudnn_type(DType dtype) noexcept {
  return dtype == DType::f64    ? CUDNN_DATA_DOUBLE
         : dtype == DType::f16  ? CUDNN_DATA_HALF
         : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

void CudnnHandle::close() noexcept {
  if (handle_) static_cast<void>(cudnn()->cudnnDestroy(handle_));
  handle_ = nullptr;
}

cudnnHandle_t CudnnHandle::get(cudaStream_t stream, const char*& problem) noexcept {
  if (handle_) return handle_;
  const Cudnn* const library = cudnn();
  if (!library) {
    problem = "cuDNN was not found (EBB_CUDNN_LIBRARY may name its file)";
    return nullptr;
  }
  if (done(library->cudnnCreate(&handle_))) {
    if (done(library->cudnnSetStream(handle_, stream))) return handle_;
  } else {
    handle_ = nullptr;
  }
  close();
  static_cast<void>(cudaGetLastError());
  problem = "cuDNN does not start on this device";
  return nullptr;
}

bool has_cudnn() noexcept { return cudnn() != nullptr; }
bool has_cudnn_bf16(int compute_capability) noexcept {
  constexpr std::size_t kFirst = 91300;
  return has_cudnn() && cudnn()->cudnnGetVersion() >= kFirst && compute_capability >= 80;
}
#else
bool has_cudnn() noexcept { return false; }
bool has_cudnn_bf16(int) noexcept { return false; }
#endif

#if EBB_HAS_NVRTC
EBB_LIBRARY(Nvrtc, nvrtc, EBB_NVRTC_FUNCTIONS, kNvrtc,
            {CUDART_VERSION >= 13000 ? "libnvrtc.so.13" : "libnvrtc.so.12"})

bool has_nvrtc(int compute_capability) noexcept {
  const Nvrtc* const library = nvrtc();
  int known[64] = {}, count = 0, major = 0, minor = 0;
  if (!library || library->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
      1000 * major + 10 * minor != CUDART_VERSION ||
      library->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS ||
      count > static_cast<int>(std::size(known)) ||
      library->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
    return false;
  return std::find(known, known + count, compute_capability) != known + count;
}
#else
bool has_nvrtc(int) noexcept { return false; }
#endif

#if EBB_HAS_NCCL
EBB_LIBRARY(Nccl, nccl, EBB_NCCL_FUNCTIONS, kNccl, {"libnccl.so.2"})
#endif

#undef EBB_LIBRARY
#undef EBB_FIND

void warn_by(void (*log_warning)(const std::string& text)) noexcept { warn = log_warning; }

void warn_of_slow_products(const char* problem) {
  static std::atomic_flag said;
  if (warn && !said.test_and_set())
    warn(std::string("matrix products run by ebb's own kernels, up to a hundred times slower: ") +
         problem);
}

std::string library_problem() {
#if EBB_HAS_CUBLASLT
  if (chosen_file(kCublasLt) && !cublas_lt()) return why_not(kCublasLt);
#endif
#if EBB_HAS_CUDNN
  if (chosen_file(kCudnn) && !cudnn()) return why_not(kCudnn);
#endif
#if EBB_HAS_NVRTC
  if (chosen_file(kNvrtc) && !nvrtc()) return why_not(kNvrtc);
#endif
  return "";
}

}  // namespace ebb::cuda
