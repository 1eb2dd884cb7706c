#include "ebb/allocator/host_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "ebb/allocator/host_capacity.h"

namespace ebb::memory {
namespace {

constexpr std::size_t kReadAgainAfter = std::size_t{64} << 20;
constexpr std::size_t kCutBytes = std::size_t{1} << 20;

std::size_t system_page_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Without what is mapped from files. /proc/self/statm reads "size resident shared ...", in pages.
std::size_t resident_bytes() noexcept {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 256> text;
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  std::array<std::size_t, 3> pages{};
  const char* at = text.data();
  const char* const end = at + std::max<ssize_t>(length, 0);
  for (std::size_t& each : pages) {
    while (at < end && *at == ' ') ++at;
    at = std::from_chars(at, end, each).ptr;
  }
  return (pages[1] - std::min(pages[1], pages[2])) * system_page_bytes();
}

}  // namespace

HostSource::HostSource(std::optional<std::size_t> capacity_bytes) noexcept
    : page_bytes_(system_page_bytes()),
      fixed_capacity_(capacity_bytes),
      resident_before_(resident_bytes()) {}

HostSource::HostSource() : HostSource(configured_capacity()) {}

HostSource::HostSource(std::size_t capacity_bytes) noexcept
    : HostSource(std::optional(capacity_bytes)) {}

// What the device holds and has touched is no part of what is free. Where the rest of the process
// has grown meanwhile, that counts as the device's, up to what it has committed: the margin is for
// that.
std::size_t HostSource::capacity_bytes() const noexcept {
  return capacity_with(committed_bytes_.load(std::memory_order_relaxed));
}

std::size_t HostSource::capacity_with(std::size_t committed) const noexcept {
  if (fixed_capacity_) return *fixed_capacity_;
  const std::size_t resident = resident_bytes();
  const std::size_t held = std::min(committed, resident - std::min(resident, resident_before_));
  const std::size_t capacity = host_capacity(host_memory(), held);
  capacity_.store(capacity, std::memory_order_relaxed);
  read_again_at_.store(committed + kReadAgainAfter, std::memory_order_relaxed);
  return capacity;
}

bool HostSource::admits(std::size_t committed, std::size_t bytes) const noexcept {
  if (!fixed_capacity_ && committed + bytes <= capacity_.load(std::memory_order_relaxed) &&
      committed + bytes <= read_again_at_.load(std::memory_order_relaxed))
    return true;
  return committed + bytes <= capacity_with(committed);
}

void* HostSource::reserve(std::size_t bytes) noexcept {
  void* base =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

// Where this fails (a process has 65,530 mappings, and to cut a hole in one makes two) the
// addresses are lost, not the memory.
void HostSource::unreserve(void* base, std::size_t bytes) noexcept { ::munmap(base, bytes); }

bool HostSource::commit(void* at, std::size_t bytes) noexcept {
  const std::size_t before = committed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (admits(before, bytes) && ::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0) return true;
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// To cut a hole in a mapping makes two of it, and a process has 65,530, which malloc and threads
// need as well: small holes stay part of their mapping, and only their memory goes.
bool HostSource::decommit(void* at, std::size_t bytes) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if ((bytes < kCutBytes || ::mmap(at, bytes, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) &&
      ::madvise(at, bytes, MADV_DONTNEED) != 0)
    return false;
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

DeviceMemory HostSource::device_memory() const noexcept {
  const HostMemory memory = host_memory();
  return {.total = memory.total, .free = memory.free};
}

}  // namespace ebb::memory
