#include "ebb/kernels/cuda/runtime/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>

namespace ebb::cuda {
namespace {

[[maybe_unused]] constexpr const char* kCublasLt = "EBB_CUBLASLT_LIBRARY";
[[maybe_unused]] constexpr const char* kCudnn = "EBB_CUDNN_LIBRARY";
[[maybe_unused]] constexpr const char* kNvrtc = "EBB_NVRTC_LIBRARY";

constinit const std::atomic<bool>* switch_of_tf32 = nullptr;

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
EBB_LIBRARY(CublasLt, cublas_lt, EBB_CUBLASLT_FUNCTIONS, kCublasLt,
            {"libcublasLt.so.13", "libcublasLt.so.12"})

CublasLtHandle::~CublasLtHandle() {
  if (handle_) static_cast<void>(cublas_lt()->cublasLtDestroy(handle_));
}

cublasLtHandle_t CublasLtHandle::get(const char*& problem) noexcept {
  const std::lock_guard lock(mutex_);
  if (handle_) return handle_;
  const CublasLt* const library = cublas_lt();
  if (!library) {
    problem = "cuBLASLt was not found (EBB_CUBLASLT_LIBRARY may name its file)";
    return nullptr;
  }
  if (library->cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS) return handle_;
  static_cast<void>(cudaGetLastError());
  problem = "cuBLASLt does not start on this device";
  return handle_ = nullptr;
}
#endif

#if EBB_HAS_CUDNN
EBB_LIBRARY(Cudnn, cudnn, EBB_CUDNN_FUNCTIONS, kCudnn, {"libcudnn.so.9"})

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
  if (library->cudnnCreate(&handle_) == CUDNN_STATUS_SUCCESS) {
    if (library->cudnnSetStream(handle_, stream) == CUDNN_STATUS_SUCCESS) return handle_;
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

#undef EBB_LIBRARY
#undef EBB_FIND

bool is_tf32_allowed() noexcept {
  return switch_of_tf32 && switch_of_tf32->load(std::memory_order_relaxed);
}

void look_for_tf32_at(const std::atomic<bool>& tf32_switch) noexcept {
  switch_of_tf32 = &tf32_switch;
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
