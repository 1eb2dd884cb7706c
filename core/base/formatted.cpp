#include "ebb/core/base/formatted.h"

#include <locale.h>

#include <cmath>
#include <cstdio>

namespace ebb::detail {

std::string formatted(const char* format, double value) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  if (std::isnan(value)) value = std::abs(value);
  char text[64];
  const locale_t users = uselocale(c_locale);  // a program's may have a comma
  std::snprintf(text, sizeof text, format, value);
  uselocale(users);
  return text;
}

}  // namespace ebb::detail
