// Amounts of memory as people write them.
#pragma once

#include <cstddef>
#include <string_view>

namespace ebb::memory {

/// Parses "4096", "512M" or "8GiB" into bytes; units are powers of 1024 with or without "iB".
/// Returns 0 for anything else, and for more than can be addressed.
std::size_t parse_bytes(std::string_view text) noexcept;

}  // namespace ebb::memory
