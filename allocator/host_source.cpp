#include "ebb/allocator/host_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace ebb::memory {
namespace {

constexpr std::int64_t kOldAfter = 2'000'000;  // nanoseconds: a reading takes some 40,000
constexpr std::size_t kCutBytes = std::size_t{1} << 20;

std::int64_t now() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::size_t less(std::size_t a, std::size_t b) noexcept { return a - std::min(a, b); }

// Faults pages in now. A page that becomes resident only later still counts as free, would be
// promised twice, and its first use could get the process killed.
void make_resident(void* at, std::size_t bytes, std::size_t page_bytes) noexcept {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE: Linux 5.14, glibc 2.35
  if (::madvise(at, bytes, kPopulateWrite) == 0) return;
  auto* const pages = static_cast<volatile std::byte*>(at);
  for (std::size_t offset = 0; offset < bytes; offset += page_bytes) pages[offset] = std::byte{0};
}

}  // namespace

HostSource::HostSource(std::optional<std::size_t> capacity_bytes) noexcept
    : page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      fixed_capacity_(capacity_bytes) {}

// Returns the capacity. Committed memory is resident, so the free memory does not include it.
std::size_t HostSource::read() const noexcept {
  const std::size_t committed = committed_bytes_.load(std::memory_order_relaxed);
  const HostMemory memory = host_memory();
  std::size_t left = less(host_capacity(memory, committed), committed);
  // Addresses that are already held do not count against RLIMIT_AS again.
  const std::size_t held = less(reserved_addresses_.load(std::memory_order_relaxed), committed);
  if (memory.addresses < less(left, held)) left = held + memory.addresses;
  capacity_.store(committed + left, std::memory_order_relaxed);
  total_.store(memory.total, std::memory_order_relaxed);
  read_again_at_.store(committed + left / 4, std::memory_order_relaxed);
  read_time_.store(now(), std::memory_order_relaxed);
  return committed + left;
}

bool HostSource::is_old() const noexcept {
  const std::int64_t time = read_time_.load(std::memory_order_relaxed);
  return time == 0 || now() - time > kOldAfter;
}

std::size_t HostSource::capacity_bytes() const noexcept {
  return fixed_capacity_ ? *fixed_capacity_ : read();
}

bool HostSource::admits(std::size_t committed, std::size_t bytes) const noexcept {
  if (fixed_capacity_) return bytes <= less(*fixed_capacity_, committed);
  if (bytes <= less(read_again_at_.load(std::memory_order_relaxed), committed) && !is_old())
    return true;
  return bytes <= less(read(), committed);
}

void* HostSource::reserve(std::size_t bytes) noexcept {
  void* base =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  reserved_addresses_.fetch_add(bytes, std::memory_order_relaxed);
  return base;
}

// munmap can fail: a process has 65,530 mappings, and a hole in one makes two of it. Then the
// addresses are lost, but not the memory.
void HostSource::unreserve(void* base, std::size_t bytes) noexcept {
  ::munmap(base, bytes);
  reserved_addresses_.fetch_sub(bytes, std::memory_order_relaxed);
}

bool HostSource::commit(void* at, std::size_t bytes) noexcept {
  if (!admits(committed_bytes_.load(std::memory_order_relaxed), bytes)) return false;
  committed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0) {
    make_resident(at, bytes, page_bytes_);
    return true;
  }
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Keeps the mapping for small holes and only drops their memory: a hole makes two mappings of one,
// and a process has 65,530, which malloc and threads need as well.
bool HostSource::decommit(void* at, std::size_t bytes) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if ((bytes < kCutBytes || ::mmap(at, bytes, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) &&
      ::madvise(at, bytes, MADV_DONTNEED) != 0)
    return false;
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

// Reports the last reading, corrected by the bytes this source took and gave since.
DeviceMemory HostSource::device_memory() const noexcept {
  const std::size_t committed = committed_bytes_.load(std::memory_order_relaxed);
  if (fixed_capacity_)
    return {.total = *fixed_capacity_, .free = less(*fixed_capacity_, committed)};
  if (is_old()) read();
  const std::size_t total = total_.load(std::memory_order_relaxed);
  return {.total = total,
          .free = std::min(less(capacity_.load(std::memory_order_relaxed), committed), total)};
}

}  // namespace ebb::memory
