#pragma once
#include <atomic>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {

// Calls body with the indices in their own type, and returns its answer.
template <class Body>
inline Status for_indices(const Buffer& indices, const Body& body) {
  if (indices.spec.dtype == DType::i32) return body(indices.as<const std::int32_t>());
  if (indices.spec.dtype == DType::i64) return body(indices.as<const std::int64_t>());
  return kNoKernel;
}

inline constexpr Status kOutOfRange = Status::fail("was given an index out of range");

// Notes whether any piece of a kernel met an index out of range. The first such index is found
// afterwards, in order, so that the error does not depend on threads (core/tensor/index_check.h).
class OutOfRange {
 public:
  void note() noexcept { found_.store(true, std::memory_order_relaxed); }
  // The kernel's answer once its pieces are done.
  Status after(Status status) const noexcept {
    return status.ok() && found_.load(std::memory_order_relaxed) ? kOutOfRange : status;
  }

 private:
  std::atomic<bool> found_{false};
};

// OutOfRange for kernels whose pieces each handle one part of the range: an index that no piece
// took is out of range.
class AllInRange {
 public:
  explicit AllInRange(std::int64_t values) noexcept : missing_(values) {}
  void note(std::int64_t taken) noexcept { missing_.fetch_sub(taken, std::memory_order_relaxed); }
  Status after(Status status) const noexcept {
    return status.ok() && missing_.load(std::memory_order_relaxed) != 0 ? kOutOfRange : status;
  }

 private:
  std::atomic<std::int64_t> missing_;
};

}  // namespace ebb::cpu
