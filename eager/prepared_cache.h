#pragma once
#include "ebb/core/tensor/kernel_of.h"

namespace ebb::detail {

// Returns the result of the kernel's prepare rule for this query, made now or found in the cache.
// Each thread keeps its kMostPrepared most recently used results.
inline constexpr std::size_t kMostPrepared = 256;
Ref<Prepared> find_or_prepare(const Runtime& runtime, const OpDef& op, const DeviceKernel& kernel,
                              const MemoryQuery& query);

}  // namespace ebb::detail
