#include "ebb/kernels/cuda/runtime/libraries.h"

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>

namespace ebb::cuda {
namespace {

// Never closed: what such a library has started may go on until the process ends.
void* open(const char* variable, std::initializer_list<const char*> names) noexcept {
  const auto load = [](const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL); };
  const char* const chosen = std::getenv(variable);
  if (void* library = chosen && *chosen ? load(chosen) : nullptr) return library;
  for (const char* name : names)
    if (void* library = load(name)) return library;
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

#define EBB_FIND(name) is_whole = is_whole && find(library, #name, table.name);

#if EBB_HAS_CUBLASLT
const CublasLt* cublas_lt() noexcept {
  static CublasLt table;
  static const bool is_there = [] {
    void* const library = open("EBB_CUBLASLT_LIBRARY", {"libcublasLt.so.13", "libcublasLt.so.12"});
    bool is_whole = library != nullptr;
    EBB_CUBLASLT_FUNCTIONS(EBB_FIND)
    return is_whole;
  }();
  return is_there ? &table : nullptr;
}
#endif

#if EBB_HAS_CUDNN
const Cudnn* cudnn() noexcept {
  static Cudnn table;
  static const bool is_there = [] {
    void* const library = open("EBB_CUDNN_LIBRARY", {"libcudnn.so.9"});
    bool is_whole = library != nullptr;
    EBB_CUDNN_FUNCTIONS(EBB_FIND)
    return is_whole;
  }();
  return is_there ? &table : nullptr;
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

#undef EBB_FIND

}  // namespace ebb::cuda
