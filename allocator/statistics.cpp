#include "ebb/allocator/statistics.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace ebb::memory {

std::string format_bytes(std::size_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  std::size_t unit = 0;
  std::size_t unit_bytes = 1024;
  for (; unit + 1 < kUnits.size() && bytes / 1024 >= unit_bytes; unit_bytes *= 1024) ++unit;
  const bool exact = bytes % unit_bytes == 0;
  const double value = static_cast<double>(bytes) / static_cast<double>(unit_bytes);
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), exact ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::size_t parse_bytes(std::string_view text) noexcept {
  constexpr std::string_view kUnits = "KMGT";
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return value;
  const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  const std::size_t place = kUnits.find(letter);
  if (place == kUnits.npos || (unit.size() != 1 && unit.substr(1) != "iB")) return 0;
  const std::size_t shift = 10 * (place + 1);
  return value > (~std::size_t{0} >> shift) ? 0 : value << shift;
}

namespace {
std::string end_of(const std::string& text, std::size_t columns) {
  constexpr std::size_t kDots = 3;
  if (text.size() <= columns) return text;
  const std::size_t kept = columns - std::min(columns, kDots);
  return "..." + text.substr(text.size() - kept);
}
}  // namespace

std::string source_line(const Tag& tag, std::size_t columns) {
  const std::string line = std::string(tag.file) + ":" + std::to_string(tag.line);
  if (!*tag.layer) return end_of(line, columns);
  const std::size_t left = columns - std::min(columns, std::string_view("layer , ").size());
  const std::string layer =
      end_of(tag.layer, std::max(left / 2, left - std::min(left, line.size())));
  return "layer " + layer + ", " + end_of(line, left - std::min(left, layer.size()));
}

std::string describe(const ReleaseReport& report) {
  std::string line = format_bytes(report.returned_bytes) + " returned";
  const auto kept = [&](std::size_t bytes, const char* why) {
    if (bytes > 0) line += "; " + format_bytes(bytes) + why;
  };
  kept(report.pinned_bytes, " free but kept in pages that live blocks use too");
  kept(report.preallocated_bytes, " free but preallocated");
  kept(report.refused_bytes, " free but not taken back by the device");
  return line;
}

}  // namespace ebb::memory
