#include <cuda_runtime.h>

#include "ebb/kernels/cuda/loader/part.h"
#include "ebb/kernels/cuda/runtime/libraries.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

// Starts a library. Tells its time and the device memory that it takes.
[[maybe_unused]] Json start(Gpu& gpu, const std::function<bool(const char*& problem)>& start) {
  Json told;
  const char* problem = nullptr;
  const std::size_t before = gpu.free_bytes();
  bool starts = false;
  const Json time = milliseconds([&] { starts = start(problem); });
  told["starts"] = starts;
  if (problem != nullptr) told["why_not"] = problem;
  told["milliseconds"] = time;
  told["takes_bytes"] = before - std::min(before, gpu.free_bytes());
  return told;
}

Json cublas_lt(Gpu& gpu) {
#if EBB_HAS_CUBLASLT
  Json told =
      start(gpu, [&](const char*& problem) { return gpu.stream().cublas_lt(problem) != nullptr; });
  if (cuda::cublas_lt() != nullptr) told["version"] = cuda::cublas_lt()->cublasLtGetVersion();
  return told;
#else
  static_cast<void>(gpu);
  return "built without its headers";
#endif
}

Json cudnn(Gpu& gpu) {
#if EBB_HAS_CUDNN
  Json told =
      start(gpu, [&](const char*& problem) { return gpu.stream().cudnn(problem) != nullptr; });
  if (cuda::cudnn() != nullptr) told["version"] = cuda::cudnn()->cudnnGetVersion();
  told["lstm"] = gpu.profile().has_cudnn;
  told["lstm_of_bf16"] = gpu.profile().has_cudnn_bf16;
  return told;
#else
  static_cast<void>(gpu);
  return "built without its headers";
#endif
}

}  // namespace

Json device(Gpu& gpu) {
  const cuda::Toolkit toolkit = cuda::toolkit();
  cudaDeviceProp properties = {};
  require(cudaGetDeviceProperties(&properties, 0) == cudaSuccess, "to ask for the device's name");
  const memory::DeviceMemory memory = gpu.source().device_memory();
  return {{"name", properties.name},
          {"emulated", kEmulated ? Json("libraries answer as NVIDIA documents") : Json(false)},
          {"compute_capability", gpu.profile().compute_capability},
          {"multiprocessors", gpu.profile().multiprocessors},
          {"total_bytes", memory.total},
          {"free_bytes", memory.free},
          {"driver_serves", cuda::version(toolkit.driver_version)},
          {"compiled_with", cuda::version(toolkit.compiled_version)}};
}

Json libraries(Gpu& gpu) { return {{"cublaslt", cublas_lt(gpu)}, {"cudnn", cudnn(gpu)}}; }

}  // namespace ebb::facts
