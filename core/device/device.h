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

// Where tensors live and operators run: a handle, cheap to copy. Each kind of memory has one
// runtime behind it (allocator and statistics), which devices that compare equal share.
class Device {
 public:
  // The host's memory and processors.
  static Device cpu();
  // GPU `number`, from 0. Loads the CUDA part of ebb when it is first called. Throws Error, in one
  // line that says what is missing: the part, a driver, the device.
  static Device cuda(int number = 0, CallSite site = CallSite::here());
  // The best device this machine has: CUDA 0 if there is one that works, else the CPU.
  static Device best();
  // A device of shapes only, with the allocator and memory rules of `profile` and `capacity_bytes`
  // of memory it may go past (Prediction::fits tells). Each call makes a device of its own.
  // Profiles: "cpu", "cuda" and "cuda:1" (this machine's own), "t4", "a100", "l4", "h100", "h200"
  // (with cuDNN). Throws Error for another one.
  static Device simulated(std::string_view profile, std::size_t capacity_bytes,
                          CallSite site = CallSite::here());
  // "cpu", "cuda", "cuda:1" or "sim:PROFILE:SIZE" ("sim:h200:141GiB"; K, M, G with or without iB).
  // Throws Error.
  static Device parse(std::string_view text, CallSite site = CallSite::here());

  bool is_simulated() const noexcept;
  // A fresh simulated device with this device's profile and, for its capacity, the room that is
  // left on this one: its limit or capacity as read now, less what is in use. A fraction (of
  // memory::Limit) is there of what it is of here.
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
