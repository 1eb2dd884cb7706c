#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::memory {

// Bytes held at a moment that a program marked.
struct Moment {
  std::string name;
  std::size_t bytes = 0;  // at the last mark of that name
  bool before_steps = true;
};

// Memory of one run of a program: allocated bytes of a device, above the bytes held before it.
struct Footprint {
  std::vector<Moment> moments;  // in the order of their first marks
  std::int64_t steps = 0;
  std::size_t step_peak_bytes = 0;           // most in any step, from the previous mark to its own
  std::size_t held_between_steps_bytes = 0;  // at the mark of the last step, its loss included
  std::size_t peak_bytes = 0;                // most in the whole run
  ByCategory by_category{};                  // of peak_bytes, when it was first reached
  std::size_t end_bytes = 0;                 // still held after the program returned

  // Reserved bytes, above the bytes reserved before the run with an empty cache: after the program
  // returned, and after release_cached(). The first depends on the room in segments that already
  // existed, so it may differ between a device and its twin.
  std::size_t reserved_end_bytes = 0;
  std::size_t reserved_released_bytes = 0;

  // Bytes held at the moment of that name. Throws Error if it was never marked.
  std::size_t at(const std::string& moment) const;
};

// Marks that a program sets while its memory is measured; a recording of the device gets them too.
// Used by one thread at a time.
class Marks {
 public:
  // Releases the cache of `device` and starts measuring.
  explicit Marks(const Device& device);
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // Records the bytes held now under a name: mark("built").
  void operator()(std::string_view moment);
  // Ends a training step, which began at the previous mark. Reads the loss, one floating element,
  // unless it is undefined or on a simulated device without given values. Throws ShapeError and
  // Error like Tensor::item, with the caller's line.
  void step(const Tensor& loss, CallSite site = CallSite::here());

  // Shows a plan on the page of the comparison: its peak as a line and, with details, its buffers.
  void plan(Plan plan) { plans_.push_back(std::move(plan)); }

  // Losses of the steps so far; empty on a simulated device.
  const std::vector<double>& losses() const noexcept { return losses_; }
  const std::vector<Plan>& plans() const noexcept { return plans_; }
  // Returns the program's footprint after its end. Releases the cache.
  Footprint finish();

 private:
  std::size_t held() const noexcept;

  const Device device_;
  const std::shared_ptr<EventLog> log_;  // of the device's recording, or null
  const Stats before_;
  const PeakScope peak_;
  std::optional<PeakScope> since_mark_;
  Footprint footprint_;
  std::vector<double> losses_;
  std::vector<Plan> plans_;
};

}  // namespace ebb::memory
