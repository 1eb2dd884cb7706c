// Tests' control of the emulated machine.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/core/device/device.h"
#include "ebb/tests/emulated_cuda/control.h"

namespace ebb::tests {

// Control of the part that EBB_CUDA_PART names. Null if that is not the emulated one: on a GPU.
const emulated::Control* emulated_machine();

// CUDA device 0, opened once more, so that a test may lose it.
// `is_slow`: plans take it for one whose arithmetic costs far more than copies to the host.
Device own_cuda(bool is_slow = false);

// -2, -1.75, ..., 2, repeated.
std::vector<float> ramp(std::size_t count);

// Restores the emulated machine before and after a test that breaks it.
class Machine {
 public:
  Machine() : control_(*emulated_machine()) { restore(); }
  ~Machine() { restore(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const emulated::Control* operator->() const noexcept { return &control_; }
  emulated::Statistics statistics() const {
    emulated::Statistics statistics = {};
    control_.statistics(&statistics);
    return statistics;
  }
  // Number of launches, or of other calls, that a step asks for.
  template <class Step>
  std::size_t count(std::uint64_t emulated::Statistics::*calls, const Step& step) const {
    const std::uint64_t before = statistics().*calls;
    step();
    return statistics().*calls - before;
  }

 private:
  void restore() const {
    for (std::size_t i = 0; i < emulated::kFaults; ++i)
      control_.inject(static_cast<emulated::Fault>(i), 0, -1);
    control_.set_drops_waits(false);
    control_.set_at_once(false);
    control_.set_capability(0);
    control_.set_cudnn(0);
    control_.clear_complaint();
  }

  const emulated::Control& control_;
};

// A block of a device's memory or of page-locked host memory, in a scope.
class Held {
 public:
  Held(memory::CachingAllocator& from, std::size_t bytes)
      : from_(from), block_(from.allocate({bytes, memory::Category::input})) {}
  ~Held() { from_.free(block_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  std::byte* data() const noexcept { return static_cast<std::byte*>(block_->data()); }

 private:
  memory::CachingAllocator& from_;
  memory::Block* const block_;
};

// An environment variable in a scope. Devices opened meanwhile read it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

}  // namespace ebb::tests
