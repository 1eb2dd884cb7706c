#include "ebb/kernels/cuda/runtime/compiler.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "ebb/allocator/error.h"
#include "ebb/kernels/cuda/plans/fused_text.h"
#include "ebb/kernels/cuda/runtime/failure.h"
#include "ebb/kernels/cuda/runtime/libraries.h"

namespace ebb::cuda {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error("[fused] a kernel cannot be compiled: " + problem);
}

#if EBB_HAS_NVRTC
// The machine code of a text.
std::string compile(const std::string& text, int compute_capability) {
  const Nvrtc* const library = nvrtc();
  if (!library) fail("NVRTC was not found (EBB_NVRTC_LIBRARY may name its file)");
  nvrtcProgram program = nullptr;
  if (library->nvrtcCreateProgram(&program, text.c_str(), "fused.cu", kHeaderCount, kHeaderTexts,
                                  kHeaderNames) != NVRTC_SUCCESS)
    fail("NVRTC does not take its text");
  const std::shared_ptr<void> owner(
      nullptr, [&](void*) { static_cast<void>(library->nvrtcDestroyProgram(&program)); });
  // As nvcc compiles the kernels of single operators, whose bits these give.
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(compute_capability);
  const char* const options[] = {architecture.c_str(), "--std=c++20", "--device-int128",
                                 "--device-as-default-execution-space"};
  std::size_t bytes = 0;
  std::string result;
  if (library->nvrtcCompileProgram(program, std::size(options), options) != NVRTC_SUCCESS) {
    constexpr std::size_t kFirst = 2000;
    if (library->nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS) result.resize(bytes);
    if (!result.empty()) static_cast<void>(library->nvrtcGetProgramLog(program, result.data()));
    fail(result.substr(0, std::min(kFirst, result.find('\0'))));
  }
  if (library->nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS) result.resize(bytes);
  if (result.empty() || library->nvrtcGetCUBIN(program, result.data()) != NVRTC_SUCCESS)
    fail("NVRTC gives no machine code");
  return result;
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  fail(text_of(error));
}

std::shared_ptr<const void> load(const std::string& code) {
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, "fused"));
  return {std::shared_ptr<void>(), kernel};  // never unloaded: it may still be running somewhere
}
#else
std::string compile(const std::string&, int) { fail("ebb was built without NVRTC"); }
std::shared_ptr<const void> load(const std::string&) { return {}; }
#endif

}  // namespace

std::shared_ptr<const void> compiled(const std::string& text, int compute_capability) {
  struct Kept {
    std::string text;
    int compute_capability;
    std::shared_ptr<const void> kernel;
  };
  constexpr std::size_t kMost = 256;
  // Never destroyed: the driver may end before.
  static auto& kept = *new std::list<Kept>;  // the one asked for last comes first
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find_if(kept, [&](const Kept& one) {
    return one.compute_capability == compute_capability && one.text == text;
  });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
  } else {
    kept.push_front({text, compute_capability, load(compile(text, compute_capability))});
    if (kept.size() > kMost) kept.pop_back();
  }
  return kept.front().kernel;
}

}  // namespace ebb::cuda
