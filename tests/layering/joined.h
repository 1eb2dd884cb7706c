#pragma once
#include <string>
#include <vector>

namespace ebb::tests {

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace ebb::tests
