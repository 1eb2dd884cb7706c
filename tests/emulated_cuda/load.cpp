// Whoever loads the emulated device finds its libraries in the same file.
#include <dlfcn.h>

#include <cstdlib>

namespace {

[[gnu::constructor]] void name_libraries() {
  Dl_info info = {};
  if (!::dladdr(reinterpret_cast<const void*>(&name_libraries), &info) || !info.dli_fname) return;
  ::setenv("EBB_CUBLASLT_LIBRARY", info.dli_fname, 0);
  ::setenv("EBB_CUDNN_LIBRARY", info.dli_fname, 0);
}

}  // namespace
