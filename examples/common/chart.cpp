#include "ebb/examples/common/chart.h"

#include <cmath>
#include <fstream>

#include "ebb/core/base/error.h"

namespace examples {

static constexpr const char* kStyle = R"(<style>
  svg { background: #fff; fill: #1b1f24; font: 13px system-ui, sans-serif; }
  path { fill: none; stroke: #8884; stroke-width: 2; }
  .c0 { stroke: #4a90d9; } .c1 { stroke: #e69f00; } .c2 { stroke: #cc79a7; }
  .c3 { stroke: #2fa87c; } .c4 { stroke: #e4703a; }
  @media (prefers-color-scheme: dark) { svg { background: #14171b; fill: #e4e8ec; } }
</style>
)";

void write_charts(const std::string& file, const std::vector<Chart>& charts) {
  std::ofstream out(file);
  out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 " << 340 * charts.size() << "'>"
      << kStyle;
  const auto text = [&](double x, double y, const auto& words) {
    out << "<text x='" << x << "' y='" << y << "'>" << words << "</text>\n";
  };
  double bottom = 300;  // of a chart's axes, which are 600 by 240
  for (const auto& [title, curves] : charts) {
    double low = INFINITY, high = -INFINITY;  // powers of two
    for (const auto& [name, values] : curves)
      for (const double value : values) {
        low = std::min(low, std::floor(std::log2(value)));
        high = std::max(high, std::ceil(std::log2(value)));
      }
    const auto y = [&](double power) { return bottom - 240 * (power - low) / (high - low); };
    text(90, bottom - 276, title);
    for (double power = low; power <= high; power += 2) {
      out << "<path d='M90 " << y(power) << "h600'/>\n";
      text(52, y(power) + 4, std::exp2(power));
    }
    for (int power = 0; power <= 10; ++power) text(86 + 60 * power, bottom + 20, 1 << power);
    for (std::size_t c = 0; c < curves.size(); ++c) {
      const std::size_t left = 90 + 135 * c;
      text(static_cast<double>(left + 26), bottom - 256, curves[c].first);
      out << "<path class='c" << c << "' d='M" << left << ' ' << bottom - 260 << "h20";
      for (std::size_t i = 0; i < curves[c].second.size(); ++i)
        out << (i ? 'L' : 'M') << 90 + 60 * i << ' ' << y(std::log2(curves[c].second[i]));
      out << "'/>\n";
    }
    bottom += 340;
  }
  out << "</svg>\n";
  out.close();
  if (!out) throw ebb::FileError(file + ": could not be written");
}

}  // namespace examples
