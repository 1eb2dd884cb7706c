#include "ebb/allocator/bytes.h"

#include <cctype>
#include <charconv>

namespace ebb::memory {

std::size_t parse_bytes(std::string_view text) noexcept {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return value;
  if (unit.size() != 1 && unit.substr(1) != "iB") return 0;
  int shift = 0;
  switch (std::toupper(static_cast<unsigned char>(unit[0]))) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    case 'T':
      shift = 40;
      break;
    default:
      return 0;
  }
  return value > (~std::size_t{0} >> shift) ? 0 : value << shift;
}

}  // namespace ebb::memory
