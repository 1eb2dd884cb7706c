#include <cuda_runtime.h>

#include "ebb/kernels/cuda/loader/part.h"
#include "ebb/kernels/cuda/plans/sort_plan.h"
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

Json sort_workspaces(Gpu&) {
  Json told = Json::array();
  for (const std::int64_t count : {1, 1025, 5'000, 1 << 20, 1 << 24, 1 << 28, 0x7FFFFFFF}) {
    const std::size_t declared = cuda::cub_sort_bytes(count);
    const std::size_t asked = cuda::cub_sort_wants(count);
    require(asked > 0 && asked <= declared,
            "to sort " + std::to_string(count) + " pairs within the workspace");
    told.push_back({{"pairs", count}, {"asked_bytes", asked}, {"declared_bytes", declared}});
  }
  return told;
}

}  // namespace ebb::facts
