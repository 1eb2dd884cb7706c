#pragma once
#include <memory>
#include <vector>

#include "ebb/core/base/call_site.h"
#include "ebb/core/device/backend.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

// While one lives, the calling thread's eager updates that a device can run as one kernel
// (DeviceKernel::run_merged) wait in it; whatever else is run flushes it first. What has not been
// flushed when it ends, after an exception, is dropped.
class LaunchRow {
 public:
  LaunchRow() noexcept : in_row_(with(this)) {}
  // The row keeps what the launch refers to, and the inputs' memory.
  void add(Runtime& runtime, const Launch& launch, Inputs inputs, CallSite site);
  // Puts all into the stream. Throws Error, with the operator's name and line.
  void flush();
  // Whether all that was added is still as though it had not been.
  bool has_done_nothing() const noexcept { return has_waited_ && !has_done_; }

 private:
  struct Entry {
    std::vector<Buffer> buffers;  // inputs, then outputs
    Attributes attributes;
    Tensors inputs;
    CallSite site;
    Launch launch;
  };
  static TapeMode with(LaunchRow* row) noexcept {
    TapeMode mode = tape_mode();
    mode.row = row;
    return mode;
  }

  const TapeModeScope in_row_;
  Runtime* runtime_ = nullptr;
  bool has_waited_ = false, has_done_ = false;   // an update, and in part at least
  std::vector<std::unique_ptr<Entry>> entries_;  // launches refer to them
};

}  // namespace ebb::detail
