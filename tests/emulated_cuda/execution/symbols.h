#pragma once
#include <string>

namespace ebb::emulated {

// The name of a function of this library, hidden ones included; its address where it has none.
std::string symbol_name(const void* function);

}  // namespace ebb::emulated
