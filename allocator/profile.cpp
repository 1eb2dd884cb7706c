#include "ebb/allocator/profile.h"

#include <bit>

#include "ebb/allocator/error.h"

namespace ebb::memory {

std::size_t Profile::segment_bytes(std::size_t bytes) const noexcept {
  if (bytes <= small_request) return small_segment;
  if (bytes <= medium_request) return medium_segment;
  return (bytes + large_multiple - 1) / large_multiple * large_multiple;
}

void Profile::check() const {
  const auto require = [this](bool holds, const char* what) {
    if (!holds) throw Error("profile " + name + ": " + what);
  };
  require(std::has_single_bit(rounding), "rounding has to be a power of two");
  require(std::has_single_bit(page_bytes) && page_bytes >= rounding,
          "page_bytes has to be a power of two and at least the rounding");
  require(growth_step > 0 && growth_step % page_bytes == 0 && range_bytes >= growth_step &&
              range_bytes % page_bytes == 0,
          "growth_step and range_bytes have to be multiples of page_bytes");
  require(small_request <= small_segment, "small_request has to fit in a small_segment");
  require(small_request <= medium_request, "small_request has to be at most medium_request");
  require(medium_request <= medium_segment, "medium_request has to fit in a medium_segment");
  require(cuts || (!grows && medium_request == 0 && large_multiple == rounding),
          "without cuts every segment has to be as large as its block");
  for (const std::size_t segment : {small_segment, medium_segment, large_multiple})
    require(segment > 0 && segment % page_bytes == 0,
            "segments have to be multiples of page_bytes");
}

}  // namespace ebb::memory
