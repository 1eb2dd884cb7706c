#include "ebb/core/data/time_series.h"

#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

namespace {

using namespace ebb;
using ebb::tests::TemporaryFolder;

TimeSeries ramp(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return TimeSeries(values);
}

// Undoes the scaling of a ramp's values, which are their own positions.
std::vector<std::int64_t> positions(const Tensor& scaled, const Scale& scale) {
  std::vector<std::int64_t> result;
  for (const float value : scaled.to_vector<float>())
    result.push_back(std::llround(static_cast<double>(value) * scale.deviation + scale.mean));
  return result;
}

}  // namespace

TEST_CASE(
    "every target from the first possible one on is in one part as a whole, behind its window") {
  for (const std::int64_t count : {30, 50, 101})
    for (const std::int64_t length : {1, 3, 6})
      for (const std::int64_t horizon : {1, 3})
        for (const std::int64_t steps : {1, 2, 5})
          for (const double validation : {0.2, 0.3}) {
            const Windows windows = ramp(count).windows(
                {.length = length, .horizon = horizon, .steps = steps, .validation = validation});
            const std::int64_t boundary =
                count - std::llround(validation * static_cast<double>(count));
            std::int64_t first = length + horizon - 1;
            for (const auto& [part, end] :
                 {std::pair(windows.training, boundary), std::pair(windows.validation, count)}) {
              REQUIRE(part.size() == end - first - steps + 1);
              REQUIRE(part.inputs().shape() == Shape{part.size(), length, 1});
              REQUIRE(part.targets().shape() == Shape{part.size(), steps});
              const auto past = positions(part.inputs(), windows.scale);
              const auto next = positions(part.targets(), windows.scale);
              for (std::int64_t i = 0; i < part.size() * steps; ++i)
                REQUIRE(next[static_cast<std::size_t>(i)] == first + i / steps + i % steps);
              for (std::int64_t i = 0; i < part.size() * length; ++i)
                REQUIRE(past[static_cast<std::size_t>(i)] ==
                        first - horizon - length + 1 + i / length + i % length);
              first = boundary;
            }
          }
}

TEST_CASE("the scale is fitted on the training part alone") {
  std::vector<double> values = {1, 3, 1, 3, 1, 3, 1, 3, 1000, -1000};
  const Windows windows = TimeSeries(values).windows({.length = 2, .validation = 0.2});
  CHECK(windows.scale.mean == 2);
  CHECK(windows.scale.deviation == 1);
  CHECK(windows.training.targets().to_vector<float>() == std::vector<float>{-1, 1, -1, 1, -1, 1});
  CHECK(windows.validation.targets().to_vector<float>() == std::vector<float>{998, -1002});
  // The window of the first held-out target begins in the training part.
  CHECK(windows.validation.inputs().item<float>({0, 1, 0}) == 1);
}

TEST_CASE("a series that is constant in its training part is only shifted") {
  const std::vector<double> values = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 2.1};
  const Windows windows = TimeSeries(values).windows({.length = 2, .validation = 0.1});
  CHECK(windows.scale.deviation == 1);
  CHECK(windows.training.targets().to_vector<float>() == std::vector<float>(7, 0));
  CHECK(windows.validation.targets().item<float>() == tests::Approx(2));
}

TEST_CASE("windows come apart into training and validation") {
  const auto [training, validation] = ramp(100).windows({.length = 10});
  CHECK(training.size() == 70);
  CHECK(validation.size() == 20);
}

TEST_CASE("a model sees other columns beside the one that it forecasts, each in its own scale") {
  const TemporaryFolder folder;
  std::string text = "t;x;y\n";
  for (int i = 0; i < 20; ++i)
    text +=
        std::to_string(i) + ";" + std::to_string(100 - 3 * i) + ";" + std::to_string(i * i) + "\n";
  const TimeSeries series =
      TimeSeries::csv(folder.file("s.csv", text), {.value = "y", .also = {"x", "t"}});
  const Windows windows = series.windows({.length = 3, .validation = 0.2});
  REQUIRE(windows.training.inputs().shape() == Shape{13, 3, 3});
  REQUIRE(windows.also.size() == 2);
  const auto in_units = [&](const Tensor& x, std::int64_t sample, std::int64_t step, int column) {
    const Scale scale =
        column == 0 ? windows.scale : windows.also[static_cast<std::size_t>(column - 1)];
    return std::llround(
        static_cast<double>(x.item<float>({sample, step, column})) * scale.deviation + scale.mean);
  };
  for (std::int64_t sample = 0; sample < 13; ++sample)
    for (std::int64_t step = 0; step < 3; ++step) {
      const std::int64_t t = sample + step;
      REQUIRE(in_units(windows.training.inputs(), sample, step, 0) == t * t);
      REQUIRE(in_units(windows.training.inputs(), sample, step, 1) == 100 - 3 * t);
      REQUIRE(in_units(windows.training.inputs(), sample, step, 2) == t);
    }
  CHECK(windows.training.targets().shape() == Shape{13, 1});
  CHECK_ERROR(TimeSeries({1, 2}, {{1}}), Error,
              "takes series of one length, not of 2 and 1 values");
  CHECK_ERROR(TimeSeries({1, 2, 3}, {{1, std::nan(""), 3}}).windows({.length = 1}), Error,
              "value 1 of a series beside it is not finite");
}

TEST_CASE("windows of too short a series or with options out of range are refused") {
  const auto refuses = [](std::int64_t count, const WindowOptions& options, const char* why) {
    CHECK_ERROR(ramp(count).windows(options), Error, why);
  };
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  refuses(0, {}, "too short");
  refuses(10, {.length = 8, .validation = 0.2}, "too short");
  CHECK(ramp(10).windows({.length = 7, .validation = 0.2}).training.size() == 1);
  refuses(10, {.length = 2, .validation = 0.01}, "a series of 10 values, the last 0 held out");
  refuses(10, {.length = huge, .horizon = huge}, "too short");
  refuses(10, {.length = 1, .horizon = huge}, "too short");
  refuses(10, {.length = 0}, "length must be at least 1, not 0");
  refuses(10, {.length = 2, .steps = 0}, "steps must be at least 1, not 0");
  refuses(10, {.length = 2, .steps = huge}, "too short");
  refuses(10, {.length = 2, .steps = 3, .validation = 0.2}, "a target of 3, 1 behind them");
  refuses(10, {.length = 2, .horizon = 0}, "horizon must be at least 1, not 0");
  refuses(10, {.validation = 0}, "validation must lie between 0 and 1");
  refuses(10, {.validation = 1}, "validation must lie between 0 and 1");
  refuses(10, {.validation = std::nan("")}, "validation must lie between 0 and 1");
  CHECK_ERROR(TimeSeries({1, 2, std::nan(""), 4}).windows({.length = 1}), Error,
              "value 2 of the series is not finite");
}

TEST_CASE("a series is one column of a CSV, whatever the others hold") {
  const TemporaryFolder folder;
  const std::string name = folder.file("s.csv", "month,spots\n1749-01,58.0\n1749-02,62.6\n");
  CHECK(TimeSeries::csv(name, {.value = "spots"}).values() == std::vector<double>{58.0, 62.6});
  CHECK_ERROR(TimeSeries::csv(name, {.value = "month"}), FileError,
              "s.csv:2: column 'month': '1749-01' is not a number");
  CHECK_ERROR(TimeSeries::csv(name, {.value = "sunspots"}), FileError,
              "has no column 'sunspots'; it has 'spots', 'month'");
  CHECK_ERROR(TimeSeries::csv(folder.file("e.csv", "a\n"), {.value = "a"}), FileError, "no lines");
  CHECK_ERROR(TimeSeries::csv(folder.path("none"), {.value = "a"}), FileError, "cannot be opened");
}
