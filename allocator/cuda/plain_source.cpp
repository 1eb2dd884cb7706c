#include "ebb/allocator/cuda/plain_source.h"

#include <utility>

namespace ebb::memory::cuda {

PlainSource::PlainSource(int device, std::size_t page_bytes,
                         std::shared_ptr<LiveStreams> streams) noexcept
    : DeviceSource(device, page_bytes, std::move(streams)) {}

void* PlainSource::reserve(std::size_t /*bytes*/) noexcept { return nullptr; }
void PlainSource::unreserve(void* /*base*/, std::size_t /*bytes*/) noexcept {}
bool PlainSource::commit(void* /*at*/, std::size_t /*bytes*/) noexcept { return false; }
bool PlainSource::decommit(void* /*at*/, std::size_t /*bytes*/) noexcept { return false; }

void* PlainSource::map(std::size_t bytes) noexcept {
  if (!enter()) return nullptr;
  void* base = nullptr;
  if (cudaMalloc(&base, bytes) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  count_taken(bytes);
  return base;
}

// Waits explicitly: cudaFree waits too on every driver so far, but does not promise it.
bool PlainSource::unmap(void* base, std::size_t bytes) noexcept {
  if (!enter_at_rest()) return false;
  if (cudaFree(base) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  count_given_back(bytes);
  return true;
}

}  // namespace ebb::memory::cuda
