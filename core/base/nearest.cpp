#include "ebb/core/base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ebb::detail {
namespace {

// Levenshtein distance, row by row.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view wanted, std::vector<std::string> names) {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // distance, position
  for (std::size_t i = 0; i < names.size(); ++i) order.push_back({distance(wanted, names[i]), i});
  std::sort(order.begin(), order.end());
  std::string text;
  for (std::size_t i = 0; i < order.size() && i < kMost; ++i)
    text += (i ? ", " : "") + names[order[i].second];
  if (names.size() > kMost) text += ", and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace ebb::detail
