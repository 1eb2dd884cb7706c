#include "ebb/allocator/fault_source.h"

namespace ebb::memory {

void* FaultInjectingSource::reserve(std::size_t bytes) noexcept {
  return refuse_addresses_ ? nullptr : upstream_->reserve(bytes);
}

void FaultInjectingSource::unreserve(void* base, std::size_t bytes) noexcept {
  upstream_->unreserve(base, bytes);
}

bool FaultInjectingSource::commit(void* at, std::size_t bytes) noexcept {
  const bool fails_now = fail_at_ == commits_++;
  if (fails_now) fail_at_.reset();
  if (fails_now || refuse_all_ || (bound_ && committed_bytes_ + bytes > *bound_)) return false;
  if (!upstream_->commit(at, bytes)) return false;
  committed_bytes_ += bytes;
  return true;
}

bool FaultInjectingSource::decommit(void* at, std::size_t bytes) noexcept {
  if (keep_all_ || !upstream_->decommit(at, bytes)) return false;
  committed_bytes_ -= bytes;
  return true;
}

}  // namespace ebb::memory
