// The GPU under inspection, by the classes of the CUDA part itself.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "ebb/allocator/error.h"
#include "ebb/core/device/backend.h"
#include "ebb/kernels/cuda/runtime/stream.h"

namespace ebb::facts {

using Json = nlohmann::ordered_json;

// Whether the device is the emulated one. Its times, and the choices of its libraries, say nothing
// about a GPU.
inline constexpr bool kEmulated = EBB_FACTS_EMULATED;
inline constexpr const char* kNotTold = "not told by an emulated device";

// Throws Error with the action tried and the reason of its failure.
void require(const Status& status, const std::string& tried);
void require(bool holds, const std::string& tried);

// Returns tell(), or the problem that it threw.
Json attempt(const std::function<Json()>& tell);

// Median time of `count` calls.
Json microseconds(int count, const std::function<void()>& call);
// Time of one call.
Json milliseconds(const std::function<void()>& call);

class Gpu {
 public:
  // Opens GPU number 0. Throws Error, in one line, if it cannot be opened.
  Gpu();

  Backend& backend() noexcept { return *device_.backend; }
  memory::MemorySource& source() noexcept { return *device_.source; }
  memory::MemorySource& staging() noexcept { return *device_.staging; }
  const memory::Profile& profile() const noexcept { return device_.profile; }
  cuda::CudaStream& stream() noexcept { return cuda::cuda_stream(stream_.get()); }
  std::size_t free_bytes() noexcept { return source().device_memory().free; }

  void synchronise() { require(backend().synchronise(stream_.get()), "to wait for the stream"); }
  // Time of each of `count` calls put into the stream one after the other.
  Json microseconds_in_stream(int count, const std::function<void()>& call);

 private:
  detail::CudaDevice device_;
  std::unique_ptr<Stream> stream_;
};

// Memory of a source in a scope: zeroed device memory, or page-locked host memory.
class Memory {
 public:
  Memory(Gpu& gpu, std::size_t bytes);
  Memory(memory::MemorySource& source, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const noexcept { return data_; }

 private:
  memory::MemorySource& source_;
  const std::size_t bytes_;
  std::byte* const data_;
};

}  // namespace ebb::facts
