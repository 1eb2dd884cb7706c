// What memory this process may really have.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

namespace ebb::memory {

/// Where the kernel says it. Tests write trees of their own.
struct HostRoots {
  const char* proc = "/proc";
  const char* cgroup = "/sys/fs/cgroup";
};

struct HostMemory {
  /// The machine's, or the least that a limit on this process leaves of it: of a cgroup that it is
  /// in, RLIMIT_AS, RLIMIT_DATA.
  std::size_t total = 0;
  /// What can be had now without swapping and without being killed: the machine's MemAvailable, or
  /// what is left below the limit of a cgroup or RLIMIT_DATA. File cache that makes room when asked
  /// counts as left. Other processes share it, so it may be gone the next moment.
  std::size_t free = 0;
  /// What RLIMIT_AS leaves to be mapped. It bounds what one may reserve, not what one may commit: a
  /// range of addresses that is already held is no part of it any more.
  std::size_t addresses = std::numeric_limits<std::size_t>::max();
};

/// Reads it anew, by system calls and without the heap: for when memory is short. What cannot be
/// read does not bound.
HostMemory host_memory(const HostRoots& roots = {}) noexcept;

/// What EBB_CPU_MEMORY ("8GiB", "512M", "4096") says that the CPU device may reserve. Throws Error
/// when it is set to what is no size.
std::optional<std::size_t> configured_capacity();

/// What the CPU device may reserve in all when it holds `held_bytes` of memory, resident: these and
/// what is free, less a margin for the rest of the process.
std::size_t host_capacity(const HostMemory& memory, std::size_t held_bytes = 0) noexcept;

}  // namespace ebb::memory
