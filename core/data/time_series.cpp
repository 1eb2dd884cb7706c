#include "ebb/core/data/time_series.h"

#include <algorithm>
#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/data/csv.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/data/moments.h"

namespace ebb {

namespace {

constexpr const char* kWhat = "windows";

// The windows whose targets are scaled[first] to scaled[last - 1].
DataSet make_windows(const std::vector<float>& scaled, const WindowOptions& options,
                     std::int64_t first, std::int64_t last) {
  const std::int64_t count = last - first;
  Tensor past = detail::make_input<float>({count, options.length, 1}, kWhat, [&](float* to) {
    for (std::int64_t target = first; target < last; ++target) {
      const auto begin = scaled.begin() + (target - options.horizon + 1 - options.length);
      to = std::copy(begin, begin + options.length, to);
    }
  });
  Tensor next = detail::make_input<float>({count, 1}, kWhat, [&](float* to) {
    std::copy(scaled.begin() + first, scaled.begin() + last, to);
  });
  return DataSet(std::move(past), std::move(next));
}

}  // namespace

TimeSeries TimeSeries::csv(const std::string& file, const TimeSeriesCsvOptions& options) {
  detail::CsvReader reader(file);
  const std::size_t column = reader.column(options.value);
  std::vector<double> values;
  while (reader.next()) values.push_back(reader.number(column));
  if (values.empty()) throw FileError(file + ": has no lines below its header");
  return TimeSeries(std::move(values));
}

Windows TimeSeries::windows(const WindowOptions& options, CallSite site) const {
  const detail::CallSiteScope at(site);
  const auto fail = [&](const std::string& text) {
    throw Error(detail::message(kWhat, text, site));
  };
  if (options.length < 1) fail("length must be at least 1, not " + std::to_string(options.length));
  if (options.horizon < 1)
    fail("horizon must be at least 1, not " + std::to_string(options.horizon));
  if (!(options.validation > 0 && options.validation < 1))
    fail("validation must lie between 0 and 1, not " + std::to_string(options.validation));
  for (std::int64_t i = 0; i < size(); ++i)
    if (!std::isfinite(values_[static_cast<std::size_t>(i)]))
      fail("value " + std::to_string(i) + " of the series is not finite");

  const std::int64_t held_out = std::llround(options.validation * static_cast<double>(size()));
  const std::int64_t boundary = size() - held_out;
  // The first target that has a whole window before it; compared so that nothing overflows.
  const bool fits = options.length < boundary && options.horizon <= boundary - options.length;
  if (!fits || held_out < 1)
    fail("a series of " + std::to_string(size()) + " values, the last " + std::to_string(held_out) +
         " held out, is too short for windows of " + std::to_string(options.length) +
         " values and a target " + std::to_string(options.horizon) + " behind them in each part");

  const detail::Moments fitted =
      detail::moments(values_.data(), static_cast<std::size_t>(boundary));
  const Scale scale{fitted.mean, fitted.deviation};
  std::vector<float> scaled;
  scaled.reserve(values_.size());
  for (const double value : values_)
    scaled.push_back(static_cast<float>((value - scale.mean) / scale.deviation));
  const std::int64_t first = options.length + options.horizon - 1;
  return {make_windows(scaled, options, first, boundary),
          make_windows(scaled, options, boundary, size()), scale};
}

}  // namespace ebb
