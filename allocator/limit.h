// How much may be reserved, and when.
#pragma once

#include <cstddef>

namespace ebb::memory {

/// Bytes, or a fraction of the device's capacity.
class Limit {
 public:
  Limit(std::size_t bytes) noexcept : bytes_(bytes) {}  // NOLINT: 512_MiB is a limit
  /// Of 0 to 1; what is beyond counts as the nearer of them.
  static Limit fraction(double of_capacity) noexcept {
    Limit limit(0);
    limit.fraction_ = of_capacity > 0 ? (of_capacity < 1 ? of_capacity : 1) : 0;
    limit.is_fraction_ = true;
    return limit;
  }
  std::size_t bytes_of(std::size_t capacity) const noexcept {
    if (!is_fraction_) return bytes_;
    return static_cast<std::size_t>(fraction_ * static_cast<double>(capacity));
  }

 private:
  std::size_t bytes_;
  double fraction_ = 0;
  bool is_fraction_ = false;
};

/// Whether memory is taken from the device as it is needed, or ahead.
enum class Growth {
  on_demand,
  preallocate,  ///< up to the limit at once; without one, all that the device has left
};

}  // namespace ebb::memory
