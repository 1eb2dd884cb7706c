#pragma once
#include "ebb/core/tensor/kernel_of.h"

namespace ebb::detail {

// What the kernel's prepare rule makes for this query, or made for an equal one: each thread
// remembers the most recent of them, kMostPrepared at most.
inline constexpr std::size_t kMostPrepared = 256;
Ref<Prepared> find_or_prepare(const Runtime& runtime, const OpDef& op, const DeviceKernel& kernel,
                              const MemoryQuery& query);

}  // namespace ebb::detail
