// Constants that decide where memory comes from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ebb::memory {

/// The set of kernels, and their memory rules, that a device runs.
enum class Kernels : unsigned char { cpu, cuda };

/// Belongs to a kind of device and is equal on its simulated twin. Two allocators with equal
/// profiles and equal calls have equal figures and place every block alike.
///
/// With addresses to reserve, the cache is two sets of ranges, for small and for larger requests.
/// They grow in steps as memory is needed, and give back pages anywhere inside. Without, the cache
/// is segments of fixed size.
struct Profile {
  std::string name = "cpu";
  Kernels kernels = Kernels::cpu;
  std::size_t rounding = 512;           ///< of every block; a power of two
  std::size_t page_bytes = 4096;        ///< unit in which the device maps memory, a power of two; a
                                        ///< pool's blocks are whole pages
  std::size_t small_request = 1 << 20;  ///< requests up to this size have ranges or segments of
                                        ///< their own
  bool grows = true;
  std::size_t growth_step = 2 << 20;               ///< of a range, if limits allow it
  std::size_t range_bytes = std::size_t{1} << 40;  ///< addresses reserved for one range
  std::size_t small_segment = 2 << 20;    ///< without growth: segment size for small requests,
  std::size_t medium_request = 10 << 20;  ///< largest request that comes from ...
  std::size_t medium_segment = 20 << 20;  ///< ... segments of this size,
  std::size_t large_multiple = 2 << 20;   ///< and unit of the segments for larger requests
  bool cuts = true;  ///< Whether blocks are cut from free memory. Otherwise each is a whole
                     ///< segment, for tools that detect accesses beyond a block; large requests
                     ///< only, no growth.
  /// Whether programs are captured once and replayed. Feeds and fetches then go through fixed
  /// places in the arena, since the captured addresses must not move.
  bool captures_programs = false;
  /// 90 for compute capability 9.0 of a GPU; workspace depends on it.
  int compute_capability = 0;
  int multiprocessors = 0;
  /// Whether cuDNN may compute convolutions and LSTMs, and bf16 LSTMs.
  bool has_cudnn = false;
  bool has_cudnn_bf16 = false;
  /// Whether chains of pointwise operators run as one kernel; CUDA compiles it by NVRTC.
  bool fuses = true;
  /// Estimates by which a plan chooses what to compute again; only their ratios matter. Measured by
  /// `benchmark_budget --constants` on two quiet cores of an EPYC with AVX-512.
  std::int64_t products_per_us = 240'000;  ///< multiply-adds of large f32 products
  std::int64_t bytes_per_us = 28'000;      ///< read and written by pointwise operators
  std::int64_t step_ns = 115;              ///< of an operator on next to no data
  /// Copied to or from page-locked memory of the host. 0: plans move no values there.
  std::int64_t link_bytes_per_us = 0;

  /// Bytes to leave free when all of a device's `room` is reserved in advance. On a GPU cuBLASLt,
  /// cuDNN and kernels that are loaded late take memory of their own.
  std::size_t left_free(std::size_t room) const noexcept {
    constexpr std::size_t kLeast = std::size_t{512} << 20;
    if (kernels == Kernels::cpu) return 0;
    return std::min(std::max(room / 20, kLeast), room / 2);
  }
  /// Allocated bytes of a request.
  std::size_t rounded(std::size_t bytes) const noexcept {
    return (bytes + rounding - 1) & ~(rounding - 1);
  }
  /// Rounds up to whole pages.
  std::size_t in_pages(std::size_t bytes) const noexcept {
    return whole_pages(bytes + page_bytes - 1);
  }
  /// Rounds down to whole pages.
  std::size_t whole_pages(std::size_t bytes) const noexcept { return bytes & ~(page_bytes - 1); }
  /// Size of the fixed segment that is mapped for a block of `bytes` (rounded). If it is refused,
  /// one of in_pages() bytes is tried.
  std::size_t segment_bytes(std::size_t bytes) const noexcept;
  /// Throws Error when the constants contradict each other.
  void check() const;
};

}  // namespace ebb::memory
