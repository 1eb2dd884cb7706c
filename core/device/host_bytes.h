#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace ebb {

// Uninitialised host memory for copies of values. No allocator counts it.
class HostBytes {
 public:
  HostBytes() = default;
  // Throws OutOfMemory if the CPU device has less left, even after its cache went back. Trying
  // anyway could get the process killed, by a cgroup or on a full machine. `by` is the requester
  // and `purpose` the reason, both static; `hint` suggests another way.
  HostBytes(std::size_t bytes, const char* by, const char* purpose, const std::string& hint = {});

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }

  // Bytes that all HostBytes of the process hold now.
  static std::size_t held() noexcept;

 private:
  struct Free {
    std::size_t bytes;
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace ebb
