#pragma once
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"

namespace ebb::tests {

inline std::vector<std::string> names(const std::vector<Parameters::Entry>& entries) {
  std::vector<std::string> names;
  for (const Parameters::Entry& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace ebb::tests
