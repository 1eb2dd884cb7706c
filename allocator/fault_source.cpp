#include "ebb/allocator/fault_source.h"

namespace ebb::memory {

void* FaultInjectingSource::map(std::size_t bytes) noexcept {
  const bool fails_now = fail_at_ == maps_++;
  if (fails_now) fail_at_.reset();
  if (fails_now || refuse_all_ || (bound_ && mapped_bytes_ + bytes > *bound_)) return nullptr;
  void* base = upstream_->map(bytes);
  if (base) mapped_bytes_ += bytes;
  return base;
}

void FaultInjectingSource::unmap(void* base, std::size_t bytes) noexcept {
  upstream_->unmap(base, bytes);
  mapped_bytes_ -= bytes;
}

bool FaultInjectingSource::grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept {
  const std::size_t more = new_bytes - bytes;
  if (refuse_all_ || (bound_ && mapped_bytes_ + more > *bound_)) return false;
  if (!upstream_->grow(base, bytes, new_bytes)) return false;
  mapped_bytes_ += more;
  return true;
}

}  // namespace ebb::memory
