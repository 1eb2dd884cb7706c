#include "ebb/core/memory/figures.h"

#include <array>

#include "ebb/core/base/formatted.h"

namespace ebb::memory {

std::string figure(std::size_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return ebb::detail::formatted("%.1f ", value) + kUnits[unit];
}

std::string exact_figure(std::size_t bytes) {
  std::string text = std::to_string(bytes);
  for (std::size_t digits = 3; digits < text.size(); digits += 4)
    text.insert(text.size() - digits, 1, ',');
  return text;
}

std::string change_figure(std::size_t from, std::size_t to) {
  if (from == to) return figure(0);
  return to > from ? "+" + figure(to - from) : "-" + figure(from - to);
}

}  // namespace ebb::memory
