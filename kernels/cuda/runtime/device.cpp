#include "ebb/kernels/cuda/runtime/device.h"

#include <cstdlib>
#include <exception>
#include <string_view>

#include "ebb/allocator/cuda/current_device.h"
#include "ebb/allocator/cuda/device_memory.h"
#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/cuda_profile.h"
#include "ebb/kernels/cuda/loader/part.h"
#include "ebb/kernels/cuda/runtime/backend.h"
#include "ebb/kernels/cuda/runtime/failure.h"
#include "ebb/kernels/cuda/runtime/libraries.h"

namespace ebb::cuda {

Toolkit toolkit() noexcept {
  Toolkit found{.compiled_version = CUDART_VERSION, .lacks_cublas_lt = !EBB_HAS_CUBLASLT};
  // The only call that is safe without a driver: it succeeds and answers 0. Any other would fail
  // and leave its error behind for good.
  if (cudaDriverGetVersion(&found.driver_version) != cudaSuccess || found.driver_version == 0) {
    found.driver_version = 0;
    return found;
  }
  if (cudaGetDeviceCount(&found.device_count) != cudaSuccess) {
    found.device_count = 0;
    static_cast<void>(cudaGetLastError());
  }
  return found;
}

namespace {

constexpr int kOldest = 75;  // compute capability

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// The functions below return an empty string if all is well, else the problem in one line.

std::string find(int number) {
  const Toolkit here = toolkit();
  // Asked first: without a driver every other question leaves an error behind.
  if (here.driver_version == 0) return "this machine has no CUDA driver";
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (error == cudaErrorInsufficientDriver)
    return "the driver here is for CUDA " + version(here.driver_version) +
           ", and this ebb needs one for CUDA " + version(here.compiled_version) + " or newer";
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return "the driver finds no device (CUDA_VISIBLE_DEVICES may hide them)";
  if (error != cudaSuccess) return text_of(error);
  if (number >= 0 && number < count) return "";
  return count == 1 ? "there is cuda:0 alone"
                    : "there are cuda:0 to cuda:" + std::to_string(count - 1);
}

// An environment variable with two values; the first is the default.
struct Choice {
  const char* variable;
  std::string_view first, second;

  std::string_view value() const noexcept {
    const char* const text = std::getenv(variable);
    return text && *text ? text : first;
  }
  bool is_second() const noexcept { return value() == second; }
  std::string problem() const {
    if (value() == first || is_second()) return "";
    return std::string(variable) + " is '" + std::string(value()) +
           "'; there is: " + std::string(first) + ", " + std::string(second);
  }
};
// Whether LSTMs are composed of products even where cuDNN is there.
constexpr Choice kLstm = {"EBB_CUDA_LSTM", "cudnn", "composed"};
// Whether the backend waits for each launch.
constexpr Choice kCheck = {"EBB_CUDA_CHECK", "0", "1"};

std::string read_environment() {
  for (const Choice& choice : {kLstm, kCheck})
    if (std::string problem = choice.problem(); !problem.empty()) return problem;
  return library_problem();
}

std::string read_profile(int number, memory::Profile& profile) {
  int major = 0, minor = 0, multiprocessors = 0;
  for (const auto& [attribute, value] : {std::pair{cudaDevAttrComputeCapabilityMajor, &major},
                                         {cudaDevAttrComputeCapabilityMinor, &minor},
                                         {cudaDevAttrMultiProcessorCount, &multiprocessors}}) {
    const cudaError_t error = cudaDeviceGetAttribute(value, attribute, number);
    if (error == cudaSuccess) continue;
    static_cast<void>(cudaGetLastError());
    return text_of(error);
  }
  profile = memory::cuda_profile(major * 10 + minor, multiprocessors);
  profile.has_cudnn = !kLstm.is_second() && has_cudnn();
  profile.has_cudnn_bf16 = profile.has_cudnn && has_cudnn_bf16(profile.compute_capability);
  profile.fuses = has_nvrtc(profile.compute_capability);
  if (profile.compute_capability >= kOldest) return "";
  return "its compute capability is " + capability_text(profile.compute_capability) +
         "; ebb needs " + capability_text(kOldest) + " or newer";
}

// Makes the context: looking up a kernel is its first use.
std::string start(int number, int capability) {
  cudaError_t error = memory::cuda::make_current(number);
  if (error == cudaSuccess) error = probe();
  if (error == cudaSuccess) return "";
  static_cast<void>(cudaGetLastError());
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "it has no memory left for a context";
    case cudaErrorDevicesUnavailable:
      return "it is in use by another process, or its compute mode lets none in";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "its compute capability is " + capability_text(capability) +
             ", for which this ebb was not built";
    default:
      return text_of(error);
  }
}

std::string open(int number, detail::CudaDevice& device) {
  memory::Profile profile;
  if (std::string problem = find(number); !problem.empty()) return problem;
  if (std::string problem = read_environment(); !problem.empty()) return problem;
  if (std::string problem = read_profile(number, profile); !problem.empty()) return problem;
  if (std::string problem = start(number, profile.compute_capability); !problem.empty())
    return problem;
  const auto streams = std::make_shared<memory::cuda::LiveStreams>();
  std::string problem;
  auto source = memory::cuda::make_device_source(number, streams, profile, problem);
  if (!source) return problem;
  device.staging = memory::cuda::make_pinned_source(number, streams);
  device.backend = std::make_unique<CudaBackend>(number, streams, kCheck.is_second());
  device.source = std::move(source);
  device.profile = std::move(profile);
  return "";
}

}  // namespace

std::string open_device(int number, detail::CudaDevice& device) noexcept {
  std::string problem;
  try {
    problem = open(number, device);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return problem.empty() ? problem
                         : "cuda:" + std::to_string(number) + " is not available: " + problem;
}

}  // namespace ebb::cuda
