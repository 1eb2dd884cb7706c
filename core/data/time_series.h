#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ebb/core/data/data_set.h"

namespace ebb {

struct TimeSeriesCsvOptions {
  std::string value;                   // column to forecast; required
  std::vector<std::string> also = {};  // further columns that the model sees
  CsvFormat format = {};
};

struct WindowOptions {
  std::int64_t length = 48;  // steps a model sees
  std::int64_t horizon = 1;  // steps from the window's last value to the target
  std::int64_t steps = 1;    // number of values in the target
  double validation = 0.2;   // share of the series, at its end, that is held out
};

// Windows of a series: samples are past [length, columns] f32, next [steps] f32, both scaled.
// Column 0 is the series to forecast. Can be taken apart: auto [training, validation] =
// series.windows();
struct Windows {
  DataSet training;    // windows whose target lies in the first part
  DataSet validation;  // windows whose target lies in the held-out part (their past may reach back)
  Scale scale;         // fitted on the training part
  std::vector<Scale> also;  // of the other columns
};

template <std::size_t Part>
DataSet get(const Windows& windows) {
  static_assert(Part < 2);
  return Part == 0 ? windows.training : windows.validation;
}

// A series of numbers at equal intervals, on the host, and further series that help to forecast it.
class TimeSeries {
 public:
  explicit TimeSeries(std::vector<double> values) : values_(std::move(values)) {}
  // Throws Error if the series differ in length.
  TimeSeries(std::vector<double> values, std::vector<std::vector<double>> also,
             CallSite site = CallSite::here());
  // Columns of a CSV. Throws FileError with file, line and column.
  static TimeSeries csv(const std::string& file, const TimeSeriesCsvOptions& options,
                        CallSite site = CallSite::here());

  const std::vector<double>& values() const noexcept { return values_; }
  const std::vector<std::vector<double>>& also() const noexcept { return also_; }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(values_.size()); }
  // Throws Error for a series too short for one window in each part, or options out of range.
  Windows windows(const WindowOptions& options = {}, CallSite site = CallSite::here()) const;

 private:
  std::vector<double> values_;
  std::vector<std::vector<double>> also_;
};

}  // namespace ebb

template <>
struct std::tuple_size<ebb::Windows> : std::integral_constant<std::size_t, 2> {};
template <std::size_t Part>
struct std::tuple_element<Part, ebb::Windows> {
  using type = ebb::DataSet;
};
