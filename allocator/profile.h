// The constants that decide where memory comes from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace ebb::memory {

/// Whose kernels, with their memory rules, a device runs.
enum class Kernels : unsigned char { cpu, cuda };

/// Belongs to a kind of device and is the same on its simulated twin: two allocators with equal
/// profiles that see the same calls hold the same figures and place every block alike.
///
/// Where a device has addresses to reserve, the cache is ranges of them that grow as memory is
/// needed, in steps, and give back pages inside: one for small requests, one for larger ones. Where
/// it has none, they are segments of fixed size.
struct Profile {
  std::string name = "cpu";
  Kernels kernels = Kernels::cpu;
  std::size_t rounding = 512;     ///< of every block; a power of two
  std::size_t page_bytes = 4096;  ///< what the device maps in, a power of two; a pool's blocks are
                                  ///< exact to it
  std::size_t small_request = 1 << 20;  ///< requests up to this many bytes keep apart
  bool grows = true;
  std::size_t growth_step = 2 << 20;               ///< of a range, where limits allow it
  std::size_t range_bytes = std::size_t{1} << 40;  ///< addresses that are reserved for one
  std::size_t small_segment = 2 << 20;             ///< Without growth, small requests come from
                                                   ///< segments of this size,
  std::size_t medium_request = 10 << 20;           ///< those up to this many bytes ...
  std::size_t medium_segment = 20 << 20;           ///< ... from segments of this size,
  std::size_t large_multiple = 2 << 20;  ///< larger ones from segments in multiples of this.
  bool cuts = true;  ///< Blocks are cut from what is free. Otherwise each is a whole segment, for
                     ///< tools that look for accesses beyond one; large requests only, no growth.
  /// Programs are captured once and replayed: feeds and fetches go through places of their own in
  /// the arena, since the addresses that a program reads and writes must not move.
  bool captures_programs = false;
  /// Of a GPU, on which workspace depends: 90 for compute capability 9.0.
  int compute_capability = 0;
  int multiprocessors = 0;
  /// Whether LSTMs may be computed by cuDNN, and those of bf16 as well.
  bool has_cudnn = false;
  bool has_cudnn_bf16 = false;

  /// Stays with a device that has so much left when all of it is reserved ahead. On a GPU cuBLASLt,
  /// cuDNN and kernels that are loaded late take memory of their own.
  std::size_t left_free(std::size_t room) const noexcept {
    constexpr std::size_t kLeast = std::size_t{512} << 20;
    if (kernels == Kernels::cpu) return 0;
    return std::min(std::max(room / 20, kLeast), room / 2);
  }
  /// The allocated bytes of a request.
  std::size_t rounded(std::size_t bytes) const noexcept {
    return (bytes + rounding - 1) & ~(rounding - 1);
  }
  /// Whole pages for so many bytes.
  std::size_t in_pages(std::size_t bytes) const noexcept {
    return whole_pages(bytes + page_bytes - 1);
  }
  /// As many whole pages as there are in so many bytes.
  std::size_t whole_pages(std::size_t bytes) const noexcept { return bytes & ~(page_bytes - 1); }
  /// The segment of fixed size that is mapped for a block of so many (rounded) bytes. Where it is
  /// refused, one of in_pages() is tried.
  std::size_t segment_bytes(std::size_t bytes) const noexcept;
  /// Throws Error when the constants contradict each other.
  void check() const;
};

}  // namespace ebb::memory
