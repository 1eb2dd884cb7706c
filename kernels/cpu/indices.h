#pragma once
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

}  // namespace ebb::cpu
