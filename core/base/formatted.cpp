#include "ebb/core/base/formatted.h"

#include <cmath>
#include <cstdio>

namespace ebb::detail {

std::string formatted(const char* format, double value) {
  if (std::isnan(value)) value = std::abs(value);
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace ebb::detail
