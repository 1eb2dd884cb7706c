// Limits on reserved memory, and growth on demand or in advance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>

#include "ebb/allocator/error.h"

namespace ebb::memory {

/// Bytes, or a fraction of the device's capacity.
class Limit {
 public:
  /// 512_MiB is a limit; 0.5 is not and does not compile. Throws Error for a negative number.
  template <class Bytes>
  requires std::is_arithmetic_v<Bytes> Limit(Bytes bytes)  // NOLINT: implicit is the point
      : bytes_(static_cast<std::size_t>(bytes)) {
    static_assert(std::is_integral_v<Bytes> && !std::is_same_v<Bytes, bool>,
                  "a limit is a whole number of bytes; for a part of the device's capacity say "
                  "memory::Limit::fraction(0.5)");
    if constexpr (std::is_signed_v<Bytes>)
      if (bytes < 0)
        throw Error("[Limit] " + std::to_string(bytes) +
                    " bytes are no limit; none at all is std::nullopt");
  }
  /// A fraction from 0 to 1. Throws Error for any other number.
  static Limit fraction(double of_capacity) {
    if (!(of_capacity >= 0 && of_capacity <= 1))
      throw Error("[Limit] takes a fraction of 0 to 1, not " + std::to_string(of_capacity));
    Limit limit(0u);
    limit.fraction_ = of_capacity;
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

/// The least of the given limits in bytes; nothing if none is given.
inline std::optional<std::size_t> least_bytes(std::initializer_list<std::optional<Limit>> limits,
                                              std::size_t capacity) noexcept {
  std::optional<std::size_t> least;
  for (const std::optional<Limit>& limit : limits)
    if (limit) least = std::min(limit->bytes_of(capacity), least.value_or(~std::size_t{0}));
  return least;
}

/// Whether memory is taken from the device on demand or in advance.
enum class Growth {
  on_demand,
  preallocate,  ///< all of the limit at once; without a limit all that the device has left, 95 % on
                ///< a GPU
};

}  // namespace ebb::memory
