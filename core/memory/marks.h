#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ebb/allocator/peak_scope.h"
#include "ebb/core/memory/footprint.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::memory {

// How a program tells what it is doing while its memory is measured. Used by one thread at a time.
class Marks {
 public:
  // Releases what `device` has cached, and measures from now on.
  explicit Marks(const Device& device);
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // Remembers what is held now under this name: mark("built").
  void operator()(std::string_view moment);
  // A training step is over; it began at the mark before. Reads the loss, one floating element,
  // unless it is on a simulated device or not defined. Throws ShapeError, Error as Tensor::item
  // does, which name the caller's line.
  void step(const Tensor& loss, CallSite site = CallSite::here());

  // Of the steps so far; none on a simulated device.
  const std::vector<double>& losses() const noexcept { return losses_; }
  // The program has returned: what it took in all. Releases what is cached.
  Footprint finish();

 private:
  std::size_t held() const noexcept;

  const Device device_;
  const Stats before_;
  const PeakScope peak_;
  std::optional<PeakScope> since_mark_;
  Footprint footprint_;
  std::vector<double> losses_;
};

}  // namespace ebb::memory
