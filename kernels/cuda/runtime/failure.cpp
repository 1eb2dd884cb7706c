#include "ebb/kernels/cuda/runtime/failure.h"

#include <set>
#include <string>

namespace ebb::cuda {
namespace {

// Keeps a text for the life of the process: a Status holds static text.
template <class MakeText>
const char* keep(const MakeText& make_text) noexcept {
  static std::mutex mutex;
  try {
    static auto* const texts = new std::set<std::string>;
    const std::lock_guard lock(mutex);
    return texts->insert(make_text()).first->c_str();
  } catch (...) {
    return "CUDA failed, and the host has no memory left for its words";
  }
}

}  // namespace

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

Status refusal(cudaError_t error) noexcept {
  static_cast<void>(cudaGetLastError());
  return Status::refuse(keep([&] { return text_of(error); }), static_cast<int>(error));
}

Status Loss::status() const noexcept {
  const char* const problem = problem_.load(std::memory_order_acquire);
  return problem ? Status::fail(problem, code_.load(std::memory_order_relaxed)) : Status{};
}

Status Loss::lose(cudaError_t error, const char* name) noexcept {
  static_cast<void>(cudaGetLastError());
  const std::lock_guard lock(mutex_);
  if (is_lost()) return status();
  code_.store(static_cast<int>(error), std::memory_order_relaxed);
  problem_.store(keep([&] {
                   const std::string text = text_of(error) + "; the device is lost to this process";
                   if (name) return "[" + std::string(name) + "] " + text;
                   return text + " (EBB_CUDA_CHECK=1 names the operator)";
                 }),
                 std::memory_order_release);
  return status();
}

}  // namespace ebb::cuda
