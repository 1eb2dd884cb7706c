// The constants that decide where memory comes from.
#pragma once

#include <cstddef>
#include <string>

namespace ebb::memory {

/// Belongs to a kind of device and is the same on its simulated twin: two allocators with equal
/// profiles that see the same calls hold the same figures and place every block alike.
///
/// Segments are of fixed size. A profile whose segments grow in place needs a source that can
/// extend a mapping at its end; nothing else here has to know.
struct Profile {
  std::string name = "cpu";
  std::size_t rounding = 512;             ///< of every block; a power of two
  std::size_t small_request = 1 << 20;    ///< requests up to this many bytes ...
  std::size_t small_segment = 2 << 20;    ///< ... come from segments of this size,
  std::size_t medium_request = 10 << 20;  ///< those up to this many bytes ...
  std::size_t medium_segment = 20 << 20;  ///< ... from segments of this size,
  std::size_t large_multiple = 2 << 20;   ///< larger ones from segments in multiples of this.
  /// Programs are captured once and replayed: feeds and fetches go through places of their own in
  /// the arena, since the addresses that a program reads and writes must not move.
  bool captures_programs = false;
  std::size_t page_bytes = 4096;  ///< what the device maps in; a pool's segments are exact to it

  /// The allocated bytes of a request.
  std::size_t rounded(std::size_t bytes) const noexcept {
    return (bytes + rounding - 1) & ~(rounding - 1);
  }
  /// The segment that is mapped for a block of so many (rounded) bytes.
  std::size_t segment_bytes(std::size_t bytes) const noexcept;
  /// The smallest segment that could hold it: what is tried when the usual one is refused.
  std::size_t exact_segment_bytes(std::size_t bytes) const noexcept;
  /// Throws Error when the constants contradict each other.
  void check() const;
};

}  // namespace ebb::memory
