#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "ebb/core/base/call_site.h"

namespace ebb {

class Runtime;

namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr std::size_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

// Place where tensors live and operators run: a handle, cheap to copy. Each kind of memory has one
// runtime behind it (allocator and statistics), shared by devices that compare equal.
class Device {
 public:
  // The host's memory and processors.
  static Device cpu();
  // GPU `number`, from 0. Loads the CUDA part of ebb at the first call. Throws Error with one line
  // that says what is missing: the part, a driver, the device.
  static Device cuda(int number = 0, CallSite site = CallSite::here());
  // The best device of this machine: CUDA 0 if it works, otherwise the CPU.
  static Device best();
  // A device without values, with the allocator and memory rules of `profile` and `capacity_bytes`
  // of memory. Programs may exceed that (see Prediction::fits). Each call makes a new device.
  // Profiles: "cpu", "cuda" and "cuda:1" (this machine's own), "t4", "a100", "l4", "h100", "h200"
  // (with cuDNN). Throws Error for any other.
  static Device simulated(std::string_view profile, std::size_t capacity_bytes,
                          CallSite site = CallSite::here());
  // Parses "cpu", "cuda", "cuda:1" or "sim:PROFILE:SIZE" ("sim:h200:141GiB"; K, M, G with or
  // without iB). Throws Error.
  static Device parse(std::string_view text, CallSite site = CallSite::here());

  bool is_simulated() const noexcept;
  // Makes a simulated device with this device's profile. Its capacity is the room left here: the
  // current limit or capacity, less the bytes in use. On the twin, a memory::Limit::fraction()
  // still refers to this device's capacity or limit.
  Device twin() const;
  // "cpu", "cuda", "cuda:1", "sim:cpu".
  const std::string& name() const noexcept;
  Runtime& runtime() const noexcept { return *runtime_; }

  friend bool operator==(const Device& a, const Device& b) noexcept {
    return a.runtime_ == b.runtime_;
  }

 private:
  friend class Runtime;
  explicit Device(Runtime* runtime, bool counted) noexcept : runtime_(runtime), counted_(counted) {
    if (counted_) retain();
  }
  void retain() const noexcept;
  void release() const noexcept;

  Runtime* runtime_;
  bool counted_;  // simulated devices are counted; real ones live as long as the process

 public:
  Device(const Device& other) noexcept : Device(other.runtime_, other.counted_) {}
  Device& operator=(Device other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(counted_, other.counted_);
    return *this;
  }
  ~Device() {
    if (counted_) release();
  }
};

}  // namespace ebb
