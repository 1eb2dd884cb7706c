#pragma once
#include <string>

namespace ebb::detail {

// The text, at an address that stays as long as the process: one for equal texts.
const char* interned(const std::string& text);

}  // namespace ebb::detail
