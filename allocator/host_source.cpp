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

HostSource::HostSource() noexcept
    : page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {}

void* HostSource::map(std::size_t bytes) noexcept {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

void HostSource::unmap(void* base, std::size_t bytes) noexcept { ::munmap(base, bytes); }

bool HostSource::grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept {
  return ::mremap(base, bytes, new_bytes, 0) != MAP_FAILED;  // in place only
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
