#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ebb::detail {

// Existing names for a message about an unknown one, nearest first by edit distance, at most a
// dozen: "a, b, and 3 more".
std::string nearest(std::string_view wanted, std::vector<std::string> names);

}  // namespace ebb::detail
