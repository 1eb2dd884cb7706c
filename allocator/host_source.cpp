#include "ebb/allocator/host_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace ebb::memory {
namespace {

// A line of /proc/meminfo reads "MemAvailable:   12345 kB".
std::size_t meminfo_bytes(std::string_view meminfo, std::string_view key) noexcept {
  std::size_t at = meminfo.find(key);
  if (at == std::string_view::npos) return 0;
  at = meminfo.find_first_of("0123456789", at + key.size());
  if (at == std::string_view::npos) return 0;
  std::size_t kibibytes = 0;
  std::from_chars(meminfo.data() + at, meminfo.data() + meminfo.size(), kibibytes);
  return kibibytes * 1024;
}

std::size_t system_bytes(int pages) noexcept {
  return static_cast<std::size_t>(::sysconf(pages)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

HostSource::HostSource(std::size_t capacity_bytes) noexcept
    : page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      capacity_bytes_(capacity_bytes) {}

HostSource::HostSource() : HostSource(system_bytes(_SC_PHYS_PAGES)) {}

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
  if (bytes <= capacity_bytes_ && before <= capacity_bytes_ - bytes &&
      ::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0)
    return true;
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

bool HostSource::decommit(void* at, std::size_t bytes) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  // Where a process has too many mappings to cut another, the memory goes back all the same.
  if (::mmap(at, bytes, PROT_NONE, kFlags, -1, 0) == MAP_FAILED &&
      ::madvise(at, bytes, MADV_DONTNEED) != 0)
    return false;
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

DeviceMemory HostSource::device_memory() const noexcept {
  DeviceMemory memory{.total = system_bytes(_SC_PHYS_PAGES),
                      .free = system_bytes(_SC_AVPHYS_PAGES)};
  const int file = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return memory;
  std::array<char, 1024> text;  // both lines are among the first three
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  if (length <= 0) return memory;
  const std::string_view meminfo(text.data(), static_cast<std::size_t>(length));
  if (const std::size_t total = meminfo_bytes(meminfo, "MemTotal:")) memory.total = total;
  if (const std::size_t free = meminfo_bytes(meminfo, "MemAvailable:")) memory.free = free;
  return memory;
}

}  // namespace ebb::memory
