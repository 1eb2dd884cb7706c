#include "ebb/allocator/cuda/pinned_source.h"

#include <unistd.h>

#include <utility>

#include "ebb/allocator/cuda/current_device.h"

namespace ebb::memory::cuda {
namespace {

std::size_t ask_system(int what) noexcept {
  const long answer = ::sysconf(what);
  return answer > 0 ? static_cast<std::size_t>(answer) : 0;
}

}  // namespace

PinnedSource::PinnedSource(int device, std::shared_ptr<LiveStreams> streams) noexcept
    : device_(device), page_bytes_(ask_system(_SC_PAGESIZE)), streams_(std::move(streams)) {}

void* PinnedSource::map(std::size_t bytes) noexcept {
  void* base = nullptr;
  const bool is_here = make_current(device_) == cudaSuccess &&
                       succeeded(cudaHostAlloc(&base, bytes, cudaHostAllocPortable));
  return is_here ? base : nullptr;
}

bool PinnedSource::unmap(void* base, std::size_t /*bytes*/) noexcept {
  if (make_current(device_) != cudaSuccess || streams_->wait_for_all() != cudaSuccess) return false;
  return succeeded(cudaFreeHost(base));
}

DeviceMemory PinnedSource::device_memory() const noexcept {
  return {.total = ask_system(_SC_PHYS_PAGES) * page_bytes_,
          .free = ask_system(_SC_AVPHYS_PAGES) * page_bytes_};
}

}  // namespace ebb::memory::cuda
