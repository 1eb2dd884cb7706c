#pragma once
#include <atomic>

#include "ebb/core/kernels/kernel.h"
#include "ebb/kernels/cpu/dispatch.h"

namespace ebb::cpu {

// Calls body with the indices as what they are, and answers what it answers.
template <class Body>
inline Status for_indices(const Buffer& indices, const Body& body) {
  if (indices.spec.dtype == DType::i32) return body(indices.as<const std::int32_t>());
  if (indices.spec.dtype == DType::i64) return body(indices.as<const std::int64_t>());
  return kUnsupportedDType;
}

// Whether any piece of a kernel came upon an index out of range. The first one is found afterwards,
// in order, so that the error depends on no thread (core/tensor/index_check.h).
class OutOfRange {
 public:
  void note() noexcept { found_.store(true, std::memory_order_relaxed); }
  // Of a kernel whose pieces are done.
  Status after(Status status) const noexcept {
    return status.ok() && found_.load(std::memory_order_relaxed) ? kOutOfRange : status;
  }
  static constexpr Status kOutOfRange = Status::fail("was given an index out of range");

 private:
  std::atomic<bool> found_{false};
};

}  // namespace ebb::cpu
