#pragma once
#include "ebb/core/base/call_site.h"
#include "ebb/core/kernels/random.h"

namespace ebb::detail {

// The bounds of a uniform draw of this dtype, rounded to it, in the name of `what`. Throws Error
// for bounds that are not finite or in the wrong order, and for two that are rounded to one number.
RandomAttributes uniform_bounds(const char* what, double low, double high, DType dtype,
                                CallSite site);
// Throws Error for a mean or deviation that is not finite or a deviation below 0.
void require_normal(const char* what, double mean, double standard_deviation, CallSite site);

}  // namespace ebb::detail
