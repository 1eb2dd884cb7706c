// Kernels that were compiled while the program runs (../nvrtc/).
#include <dlfcn.h>

#include <cstring>
#include <memory>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/outside.h"

using ebb::emulated::call;
using ebb::emulated::KernelCall;
using ebb::emulated::Machine;

using Run = void(const ebb::emulated::Outside* device, const void* arguments);

struct CUkern_st {
  Run* run;
  std::size_t argument_bytes;
};
struct CUlib_st {
  CUkern_st kernel;
  ebb::emulated::OwnMemory memory = {};
};

// Objects stay loaded: a kernel may run late.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  return call([&](Machine&, Machine::Lock&) {
    if (!library || !code) return cudaErrorInvalidValue;
    void* const object = ::dlopen(static_cast<const char*>(code), RTLD_NOW | RTLD_LOCAL);
    if (!object) return cudaErrorInvalidKernelImage;
    constexpr std::size_t kBytes = 64 << 10;
    std::unique_ptr<CUlib_st> made(
        new CUlib_st{{reinterpret_cast<Run*>(::dlsym(object, "ebb_emulated_run")),  // NOLINT
                      *static_cast<const std::size_t*>(::dlsym(object, "ebb_emulated_bytes"))}});
    if (!made->memory.take(kBytes)) return cudaErrorMemoryAllocation;
    *library = made.release();
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  if (!kernel || !library || std::strcmp(name, "fused") != 0) return cudaErrorInvalidValue;
  *kernel = &library->kernel;
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  delete library;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  const auto* const own = static_cast<const CUkern_st*>(kernel);
  const KernelCall launched = {reinterpret_cast<const void*>(own->run),
                               [](const void* run, const void* values) {
                                 reinterpret_cast<Run*>(const_cast<void*>(run))(
                                     ebb_emulated_outside(), values);
                               },
                               arguments[0], own->argument_bytes};
  return ebb_emulated_launch(config, &launched);
}
