#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ebb/core/data/data_set.h"

namespace ebb {

struct TimeSeriesCsvOptions {
  std::string value;  // the column to read; required
};

struct WindowOptions {
  std::int64_t length = 48;  // steps a model sees
  std::int64_t horizon = 1;  // how many steps after the window the target lies
  double validation = 0.2;   // the last part of the series, held out
};

// A scale fitted on the training part: scaled = (value - mean) / deviation.
struct Scale {
  double mean = 0;
  double deviation = 1;
};

// Windows of a series: samples are past [length, 1] f32, next [1] f32, both scaled. Also to be
// taken apart in two: auto [training, validation] = series.windows();
struct Windows {
  DataSet training;    // windows whose target lies in the first part
  DataSet validation;  // windows whose target lies in the held-out part (their past may reach back)
  Scale scale;
};

template <std::size_t Part>
DataSet get(const Windows& windows) {
  static_assert(Part < 2);
  return Part == 0 ? windows.training : windows.validation;
}

// A series of numbers at equal intervals, on the host.
class TimeSeries {
 public:
  explicit TimeSeries(std::vector<double> values) : values_(std::move(values)) {}
  // One column of a CSV with a header. Throws FileError with file, line and column.
  static TimeSeries csv(const std::string& file, const TimeSeriesCsvOptions& options);

  const std::vector<double>& values() const noexcept { return values_; }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(values_.size()); }
  // Throws Error for a series too short for one window in each part, or options out of range.
  Windows windows(const WindowOptions& options = {}, CallSite site = CallSite::here()) const;

 private:
  std::vector<double> values_;
};

}  // namespace ebb

template <>
struct std::tuple_size<ebb::Windows> : std::integral_constant<std::size_t, 2> {};
template <std::size_t Part>
struct std::tuple_element<Part, ebb::Windows> {
  using type = ebb::DataSet;
};
