#pragma once
#include <cstddef>

#include "ebb/core/base/call_site.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// Throws SimulatedRead on a simulated device, unless a prediction gives values to read there.
void require_readable(const TensorImpl& impl, const char* what, CallSite site);

// Copies `count` elements from `first` on to the host; on a twin, the values given in their place.
void copy_elements(const TensorImpl& impl, std::size_t first, std::size_t count, void* to,
                   const char* what, CallSite site);

}  // namespace ebb::detail
