#pragma once
#include <string>

namespace ebb::tests {

// A line of the calling file as error messages write it.
inline std::string line(int number, const char* file = __builtin_FILE()) {
  return "(" + std::string(file) + ":" + std::to_string(number) + ")";
}

}  // namespace ebb::tests
