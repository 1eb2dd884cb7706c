#pragma once
#include <string>

namespace ebb::detail {

// A number as printf() writes it in the C locale: formatted("%.4g", 0.5). A NaN has no sign. Here
// rather than by fmt, which takes two seconds to compile in each source that formats a double.
std::string formatted(const char* format, double value);

}  // namespace ebb::detail
