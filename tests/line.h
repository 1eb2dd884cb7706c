#pragma once
#include <string>

namespace ebb::tests {

// How an error says a line of the file that calls this.
inline std::string line(int number, const char* file = __builtin_FILE()) {
  return "(" + std::string(file) + ":" + std::to_string(number) + ")";
}

}  // namespace ebb::tests
