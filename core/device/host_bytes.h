#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace ebb {

// Plain memory of the host, uninitialised, for values on their way: no allocator counts it.
class HostBytes {
 public:
  HostBytes() = default;
  // Throws OutOfMemory where the CPU device has not so much left, its cache given back: to try
  // would end the process where nothing but the machine or a cgroup bounds it. `by` asks, for
  // `purpose`, both static; `hint`: what else would do.
  HostBytes(std::size_t bytes, const char* by, const char* purpose, const std::string& hint = {});

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace ebb
