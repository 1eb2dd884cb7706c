#pragma once
#include "ebb/core/base/call_site.h"

namespace ebb::detail {

// Throw Error for bounds that are not finite or in the wrong order, and for a mean or deviation
// that is not finite or a deviation below 0, in the name of `what`.
void require_bounds(const char* what, double low, double high, CallSite site);
void require_normal(const char* what, double mean, double standard_deviation, CallSite site);

}  // namespace ebb::detail
