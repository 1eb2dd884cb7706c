#include "ebb/core/data/time_series.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/data/csv.h"
#include "ebb/core/data/host_values.h"

namespace ebb {

namespace {

constexpr const char* kWindows = "windows";

using Column = std::vector<double>;

// A column with its scale, read as f32.
struct Scaled {
  const Column& values;
  Scale scale;
  float at(std::int64_t i) const {
    return static_cast<float>((values[static_cast<std::size_t>(i)] - scale.mean) / scale.deviation);
  }
};

// Makes the windows whose targets begin at first to last - 1.
DataSet make_windows(const std::vector<Scaled>& columns, const WindowOptions& options,
                     std::int64_t first, std::int64_t last) {
  const std::int64_t count = last - first;
  const auto width = static_cast<std::int64_t>(columns.size());
  Tensor past = detail::make_input<float>({count, options.length, width}, kWindows, [&](float* to) {
    for (std::int64_t target = first; target < last; ++target) {
      const std::int64_t end = target - options.horizon + 1;
      for (std::int64_t i = end - options.length; i < end; ++i)
        for (const Scaled& column : columns) *to++ = column.at(i);
    }
  });
  Tensor next = detail::make_input<float>({count, options.steps}, kWindows, [&](float* to) {
    for (std::int64_t target = first; target < last; ++target)
      for (std::int64_t i = target; i < target + options.steps; ++i) *to++ = columns.front().at(i);
  });
  return DataSet(std::move(past), std::move(next));
}

}  // namespace

TimeSeries::TimeSeries(std::vector<double> values, std::vector<std::vector<double>> also,
                       CallSite site)
    : values_(std::move(values)), also_(std::move(also)) {
  const detail::CallSiteScope at(site);
  for (const Column& column : also_)
    if (column.size() != values_.size())
      detail::refuse("TimeSeries", "takes series of one length, not of " +
                                       std::to_string(values_.size()) + " and " +
                                       std::to_string(column.size()) + " values");
}

TimeSeries TimeSeries::csv(const std::string& file, const TimeSeriesCsvOptions& options,
                           CallSite site) {
  const detail::CallSiteScope at(site);
  detail::CsvReader reader(file, options.format);
  std::vector<std::size_t> fields{reader.column(options.value)};
  for (const std::string& name : options.also) fields.push_back(reader.column(name));
  std::vector<Column> columns(fields.size());
  while (reader.next())
    for (std::size_t i = 0; i < fields.size(); ++i) columns[i].push_back(reader.number(fields[i]));
  if (columns.front().empty())
    detail::refuse_file(
        file + (options.format.header ? ": has no lines below its header" : ": has no lines"));
  Column values = std::move(columns.front());
  columns.erase(columns.begin());
  return TimeSeries(std::move(values), std::move(columns));
}

Windows TimeSeries::windows(const WindowOptions& options, CallSite site) const {
  const detail::CallSiteScope at(site);
  const auto fail = [&](const std::string& text) { detail::refuse(kWindows, text); };
  const auto require_positive = [&](const char* name, std::int64_t value) {
    if (value < 1) fail(std::string(name) + " must be at least 1, not " + std::to_string(value));
  };
  require_positive("length", options.length);
  require_positive("horizon", options.horizon);
  require_positive("steps", options.steps);
  if (!(options.validation > 0 && options.validation < 1))
    fail("validation must lie between 0 and 1, not " + std::to_string(options.validation));
  std::vector<const Column*> columns{&values_};
  for (const Column& column : also_) columns.push_back(&column);
  for (const Column* column : columns)
    for (std::size_t i = 0; i < column->size(); ++i)
      if (!std::isfinite((*column)[i]))
        fail("value " + std::to_string(i) + " of " +
             (column == &values_ ? "the series" : "a series beside it") + " is not finite");

  const std::int64_t held_out = std::llround(options.validation * static_cast<double>(size()));
  const std::int64_t boundary = size() - held_out;
  // The first target needs a whole window before it; compared so that nothing overflows.
  const bool fits = options.length < boundary && options.horizon <= boundary - options.length &&
                    options.steps <= boundary - options.length - options.horizon + 1;
  if (!fits || held_out < options.steps)
    fail("a series of " + std::to_string(size()) + " values, the last " + std::to_string(held_out) +
         " held out, is too short for windows of " + std::to_string(options.length) +
         " values and a target " +
         (options.steps > 1 ? "of " + std::to_string(options.steps) + ", " : "") +
         std::to_string(options.horizon) + " behind them in each part");

  std::vector<Scaled> scaled;
  for (const Column* column : columns)
    scaled.push_back(
        {*column, detail::fit_scale(column->data(), static_cast<std::size_t>(boundary))});
  std::vector<Scale> also;
  for (std::size_t i = 1; i < scaled.size(); ++i) also.push_back(scaled[i].scale);
  const std::int64_t first = options.length + options.horizon - 1, whole = options.steps - 1;
  return {make_windows(scaled, options, first, boundary - whole),
          make_windows(scaled, options, boundary, size() - whole), scaled.front().scale,
          std::move(also)};
}

}  // namespace ebb
