// Everything that a .cu file sees.
#pragma once
#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <device_functions.h>

namespace ebb::emulated {

// A kernel and a copy of its arguments as bytes. Pointers among them are recognised by their value.
inline constexpr std::size_t kMostArgumentBytes = 4096;
struct KernelCall {
  const void* kernel = nullptr;
  void (*invoke)(const void* kernel, const void* arguments) = nullptr;
  const void* arguments = nullptr;  // aligned to 16
  std::size_t argument_bytes = 0;
};

}  // namespace ebb::emulated

extern "C" EMULATED_HIDDEN cudaError_t ebb_emulated_launch(const cudaLaunchConfig_t* config,
                                                           const ebb::emulated::KernelCall* call);
#if defined(EBB_EMULATED_OUTSIDE)  // ../outside.h
extern "C" void ebb_emulated_arrive();
#endif

namespace ebb::emulated {

// The name of invoke() tells the sizes of a kernel's parameters: ../parameters.py compares them
// with nvcc's.
template <class Arguments, std::size_t... kBytes>
struct Parameters;
template <class... Types, std::size_t... kBytes>
struct Parameters<std::tuple<Types...>, kBytes...> {
  static void invoke(const void* function, const void* values) {
#if defined(EBB_EMULATED_OUTSIDE)
    ebb_emulated_arrive();
#endif
    std::apply(reinterpret_cast<void (*)(Types...)>(const_cast<void*>(function)),
               *static_cast<const std::tuple<Types...>*>(values));
  }
};

}  // namespace ebb::emulated

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  using Tuple = std::tuple<Parameters...>;
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments are copied as bytes");
  static_assert(sizeof(Tuple) <= ebb::emulated::kMostArgumentBytes && alignof(Tuple) <= 16);
  alignas(16) unsigned char bytes[sizeof(Tuple)] = {};  // padding, too, is the same each time
  new (bytes) Tuple(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  const ebb::emulated::KernelCall call = {
      reinterpret_cast<const void*>(kernel),
      ebb::emulated::Parameters<Tuple, sizeof(Parameters)...>::invoke, bytes, sizeof(Tuple)};
  return ebb_emulated_launch(config, &call);
}
