#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ebb/allocator/peak_scope.h"
#include "ebb/core/memory/footprint.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::memory {

// Marks that a program sets while its memory is measured. Used by one thread at a time.
class Marks {
 public:
  // Releases the cache of `device` and starts measuring.
  explicit Marks(const Device& device);
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // Records the bytes held now under a name: mark("built").
  void operator()(std::string_view moment);
  // Ends a training step, which began at the previous mark. Reads the loss, one floating element,
  // unless it is undefined or on a simulated device. Throws ShapeError and Error like Tensor::item,
  // with the caller's line.
  void step(const Tensor& loss, CallSite site = CallSite::here());

  // Losses of the steps so far; empty on a simulated device.
  const std::vector<double>& losses() const noexcept { return losses_; }
  // Returns the program's footprint after its end. Releases the cache.
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
