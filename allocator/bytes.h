// Amounts of memory as people write them.
#pragma once

#include <cstddef>
#include <string_view>

namespace ebb::memory {

/// "4096", "512M", "8GiB": bytes, in units of 1024 whether written with "iB" or without. 0 when it
/// is no size, and when it is more than can be addressed.
std::size_t parse_bytes(std::string_view text) noexcept;

}  // namespace ebb::memory
