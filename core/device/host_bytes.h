#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace ebb {

// Uninitialised host memory for values in transit. No allocator counts it.
class HostBytes {
 public:
  HostBytes() = default;
  // Throws OutOfMemory if the CPU device has less left, even after its cache went back. Trying
  // anyway could get the process killed, by a cgroup or on a full machine. `by` is the requester
  // and `purpose` the reason, both static; `hint` suggests another way.
  HostBytes(std::size_t bytes, const char* by, const char* purpose, const std::string& hint = {});

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace ebb
