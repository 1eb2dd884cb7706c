// The table of a comparison.
#include "ebb/core/memory/comparison.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "ebb/core/base/formatted.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"

namespace ebb::memory {

namespace detail {
namespace {

using Cell = std::optional<std::size_t>;  // empty: the program has no such figure

// One figure for every program, predicted and measured.
struct Row {
  std::string label;
  std::vector<std::pair<Cell, Cell>> cells;
  bool is_peak = false;      // also shown to the byte, for comparing programs
  bool opens_group = false;  // an empty line comes before it
};

constexpr std::size_t kColumns = 80;
constexpr std::size_t kFigure = 10;  // "1023.9 KiB"

std::string right(std::string text, std::size_t width) {
  if (text.size() > width) text.resize(width);
  return std::string(width - text.size(), ' ') + text;
}

std::string left(std::string text, std::size_t width) {
  text.resize(width, ' ');
  return text;
}

Cell moment(const Footprint& footprint, const std::string& name) {
  for (const Moment& each : footprint.moments)
    if (each.name == name) return each.bytes;
  return {};
}

template <class Figure>
Row make_row(std::string label, std::span<const Measurement> results, const Figure& figure) {
  Row row{std::move(label), {}};
  for (const Measurement& result : results)
    row.cells.emplace_back(figure(result.predicted), figure(result.measured));
  return row;
}

void add_moments(std::vector<Row>& rows, std::span<const Measurement> results, bool before_steps) {
  std::set<std::string> names;
  for (const Measurement& result : results)
    for (const Moment& each : result.measured.moments)
      if (each.before_steps == before_steps && names.insert(each.name).second)
        rows.push_back(make_row(each.name, results, [&](const Footprint& footprint) {
          return moment(footprint, each.name);
        }));
}

void add_peak(std::vector<Row>& rows, std::span<const Measurement> results) {
  rows.push_back(make_row("peak in all", results,
                          [](const Footprint& footprint) -> Cell { return footprint.peak_bytes; }));
  rows.back().is_peak = rows.back().opens_group = true;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const auto held = [i](const Footprint& footprint) -> Cell { return footprint.by_category[i]; };
    Row row = make_row("  " + std::string(name(static_cast<Category>(i))), results, held);
    const bool any = std::ranges::any_of(
        row.cells, [](const auto& cell) { return *cell.first != 0 || *cell.second != 0; });
    std::replace(row.label.begin(), row.label.end(), '_', ' ');
    if (any) rows.push_back(std::move(row));
  }
}

std::vector<Row> make_rows(std::span<const Measurement> results) {
  std::vector<Row> rows;
  add_moments(rows, results, true);
  const auto add = [&](const char* label, const auto& figure) {
    rows.push_back(make_row(label, results, figure));
  };
  const auto of_steps = [](std::size_t Footprint::*figure) {
    return [figure](const Footprint& footprint) -> Cell {
      return footprint.steps ? Cell(footprint.*figure) : Cell();
    };
  };
  if (std::any_of(results.begin(), results.end(),
                  [](const Measurement& result) { return result.measured.steps > 0; })) {
    add("peak in a step", of_steps(&Footprint::step_peak_bytes));
    rows.back().is_peak = true;
    add("held between steps", of_steps(&Footprint::held_between_steps_bytes));
  }
  add_moments(rows, results, false);
  add("after close or scope end",
      [](const Footprint& footprint) -> Cell { return footprint.end_bytes; });
  add("not back at the device",
      [](const Footprint& footprint) -> Cell { return footprint.reserved_released_bytes; });
  add_peak(rows, results);
  return rows;
}

// Table of the programs [begin, end). A cell holds a figure and, if there is room, the exact bytes
// after it.
class Section {
 public:
  Section(std::span<const Row> rows, std::span<const Measurement> results, bool simulated,
          std::size_t begin, std::size_t end)
      : rows_(rows), results_(results), begin_(begin), end_(end), simulated_(simulated) {
    for (const Row& row : rows) {
      label_ = std::max(label_, std::min<std::size_t>(row.label.size(), 28));
      for (std::size_t i = begin; i < end; ++i)
        for (const Cell& cell : {row.cells[i].first, row.cells[i].second})
          exact_ = std::max(exact_, exact_figure(cell.value_or(0)).size() + 2);
    }
    const std::size_t room = (kColumns - label_) / ((end - begin) * parts());
    is_wide_ = room >= kFigure + exact_ + 2;
    width_ = is_wide_ ? kFigure + exact_ + 2 : room;
  }

  std::string text() const {
    std::string text = left("", label_);
    for (std::size_t i = begin_; i < end_; ++i)
      text += right(" " + results_[i].name, width_ * parts());
    text += "\n" + left("", label_);
    for (std::size_t i = begin_; i < end_; ++i)
      text += right("predicted", width_) + (simulated_ ? "" : right("measured", width_));
    text += "\n";
    for (const Row& row : rows_) {
      if (row.opens_group) text += "\n";
      text += line(row.label, row, &Section::cell);
      if (row.is_peak && !is_wide_) text += line("  in bytes", row, &Section::exact);
    }
    return text;
  }

 private:
  std::size_t parts() const noexcept { return simulated_ ? 1 : 2; }

  std::string line(const std::string& label, const Row& row,
                   std::string (Section::*cell)(const Cell&) const) const {
    std::string text = left(label, label_);
    for (std::size_t i = begin_; i < end_; ++i) {
      text += (this->*cell)(row.cells[i].first);
      if (!simulated_) text += (this->*cell)(row.cells[i].second);
    }
    return text + "\n";
  }

  std::string cell(const Cell& cell) const {
    if (!cell) return right("-", width_);
    return is_wide_ ? right(figure(*cell), kFigure + 2) + right(exact_figure(*cell), exact_)
                    : right(figure(*cell), width_);
  }
  // Empty if there is no room: digits are never cut off.
  std::string exact(const Cell& cell) const {
    const std::string text = cell ? exact_figure(*cell) : "";
    return right(text.size() < width_ ? text : "", width_);
  }

  const std::span<const Row> rows_;
  const std::span<const Measurement> results_;
  const std::size_t begin_, end_;
  const bool simulated_;
  bool is_wide_ = false;
  std::size_t label_ = 24, exact_ = 0, width_ = 0;
};

// Says in how many figures prediction and measurement differ, and the largest difference.
std::string verdict(std::span<const Row> rows, std::span<const Measurement> results) {
  std::size_t figures = 0, off = 0, most = 0;
  std::string where;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::size_t predicted = row.cells[i].first.value_or(0);
      const std::size_t measured = row.cells[i].second.value_or(0);
      ++figures;
      if (predicted == measured) continue;
      ++off;
      const std::size_t by = std::max(predicted, measured) - std::min(predicted, measured);
      if (by <= most) continue;
      most = by;
      const std::size_t begin = row.label.find_first_not_of(' ');
      where = results[i].name + ", " + row.label.substr(begin);
    }
  if (off == 0) return "Predicted and measured are equal, byte for byte.\n";
  return "Predicted and measured differ in " + std::to_string(off) + " of " +
         std::to_string(figures) + " figures, most by " + exact_figure(most) + " bytes:\n" + where +
         ".\n";
}

std::string about(const Measurement& result, const Device& device) {
  std::string text;
  if (!result.fits) {
    const std::size_t has = device.runtime().capacity_bytes(), peak = result.predicted.peak_bytes;
    text += result.name + " does not fit: " +
            (peak > has ? figure(peak - has) + " over " : device.name() + " has ") + figure(has) +
            ".\n";
  }
  if (result.measured.steps == 0) return text;
  text += result.name + ": " + std::to_string(result.measured.steps) + " steps in " +
          ebb::detail::formatted("%.1f s", result.seconds);
  if (!result.losses.empty())
    text += ebb::detail::formatted(", last loss %.6g", result.losses.back());
  return text + ".\n";
}

}  // namespace
}  // namespace detail

std::string Comparison::table() const {
  using namespace detail;
  const std::span<const Measurement> results = results_;
  const bool simulated = device_.is_simulated();
  std::string text = "Allocated bytes on " + device_.name() + ", above what it held before\n";
  const std::vector<Row> rows = make_rows(results);
  const std::size_t at_once = simulated ? 4 : 2;
  for (std::size_t begin = 0; begin < results.size(); begin += at_once)
    text +=
        "\n" +
        Section(rows, results, simulated, begin, std::min(begin + at_once, results.size())).text();
  text += "\n";
  for (const Measurement& result : results) text += about(result, device_);
  return text + (simulated ? "The device is simulated: nothing was computed, every byte counted.\n"
                           : verdict(rows, results));
}

}  // namespace ebb::memory
