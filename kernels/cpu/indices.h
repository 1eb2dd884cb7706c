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

// Counts what the pieces of a kernel met out of range. The first such index is found afterwards, in
// order, so that the error does not depend on threads (core/tensor/index_check.h). Where each piece
// handles one part of the range, all values count at first, and pieces take off those that they
// meet.
class OutOfRange {
 public:
  explicit OutOfRange(std::int64_t count = 0) noexcept : count_(count) {}
  void note(std::int64_t more = 1) noexcept { count_.fetch_add(more, std::memory_order_relaxed); }
  // The kernel's answer once its pieces are done.
  Status after(Status status) const noexcept {
    if (!status.ok() || count_.load(std::memory_order_relaxed) == 0) return status;
    return Status::fail("was given an index out of range");
  }

 private:
  std::atomic<std::int64_t> count_;
};

}  // namespace ebb::cpu
