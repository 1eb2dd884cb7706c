#pragma once
#include <string>
#include <utility>
#include <vector>

namespace examples {

// Curves of values above 0 at 1, 2, 4, ... 1024 ranks, up to five, on logarithmic axes.
struct Chart {
  std::string title;
  std::vector<std::pair<std::string, std::vector<double>>> curves = {};
};

// Writes charts one below the other as SVG, which browsers show in their light or dark colours.
// Throws FileError.
void write_charts(const std::string& file, const std::vector<Chart>& charts);

}  // namespace examples
