// Memory that this process can really get.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

namespace ebb::memory {

/// Places where the kernel reports memory. Tests write trees of their own.
struct HostRoots {
  const char* proc = "/proc";
  const char* cgroup = "/sys/fs/cgroup";
};

struct HostMemory {
  /// The machine's memory, or the lowest limit on this process: a cgroup's, RLIMIT_AS, RLIMIT_DATA.
  std::size_t total = 0;
  /// Available now without swapping and without a kill: the machine's MemAvailable, or the rest
  /// below the limit of a cgroup or RLIMIT_DATA. Reclaimable file cache counts as available. Other
  /// processes share it, so it may be gone the next moment.
  std::size_t free = 0;
  /// Addresses that RLIMIT_AS still allows. They bound what can be reserved, not what can be
  /// committed: a range that is already held needs no more of them.
  std::size_t addresses = std::numeric_limits<std::size_t>::max();
};

/// Reads the figures anew, by system calls and without the heap, for use when memory is short. A
/// figure that cannot be read sets no bound.
HostMemory host_memory(const HostRoots& roots = {}) noexcept;

/// Capacity of the CPU device by EBB_CPU_MEMORY ("8GiB", "512M", "4096"); nothing if it is not set.
/// Throws Error if it is no size.
std::optional<std::size_t> configured_capacity();

/// Bytes that the CPU device may reserve in all when it holds `held_bytes` of resident memory:
/// these plus the free memory, less a margin for the rest of the process.
std::size_t host_capacity(const HostMemory& memory, std::size_t held_bytes = 0) noexcept;

}  // namespace ebb::memory
