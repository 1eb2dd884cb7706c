#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ebb::detail {

// For a message about a name that is not there: the names that are, those first that differ least
// from it (in letters to be changed, left out or added), at most a dozen: "a, b, and 3 more".
std::string nearest(std::string_view wanted, std::vector<std::string> names);

}  // namespace ebb::detail
