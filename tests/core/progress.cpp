#include "ebb/core/data/progress.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>
#include <sstream>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

const std::string rate = "  [0-9.e+]+ steps/s";

bool matches(const std::string& text, const std::string& pattern) {
  INFO(text);
  return std::regex_match(text, std::regex(pattern));
}

// Output of a progress over so many steps that is used like this and goes.
template <class Use>
std::string shown(std::int64_t steps, ProgressOptions options, const Use& use) {
  std::ostringstream out;
  options.out = &out;
  {
    Progress progress(steps, options);
    use(progress);
  }
  return out.str();
}

}  // namespace

TEST_CASE("progress is plain lines where there is no terminal, and one at the end",
          "[progress][host]") {
  const std::string lines = shown(3, {.label = "training", .seconds = 0}, [](Progress& progress) {
    progress.step(0.5);
    progress.step();
    progress.step(0.25);
    progress.finish();
    progress.finish();
  });
  CHECK(matches(lines, "training 1/3  33 %  loss 0.5" + rate +
                           "  0.0 s left\n"
                           "training 2/3  67 %  loss 0.5" +
                           rate +
                           "  0.0 s left\n"
                           "training 3/3  100 %  loss 0.25" +
                           rate +
                           "\n"
                           "training 3/3  100 %  loss 0.25" +
                           rate + "  0.0 s\n"));
  const std::string quiet = shown(1000, {}, [](Progress& progress) {  // prints every ten seconds
    for (int i = 0; i < 10; ++i) progress.step();
  });
  CHECK(matches(quiet, "10/1000  1 %" + rate + "  0.0 s\n"));
  CHECK(shown(1000, {}, [](const Progress&) {}) == "");
}

TEST_CASE("progress of a device has its memory as a bar of categories", "[progress][host]") {
  const Device device = Device::simulated("h200", std::size_t{1} << 30);
  const Tensor held = Tensor::zeros({1 << 20}, DType::f32, device);
  setenv("NO_COLOR", "1", 1);
  const std::string text = shown(2, {.terminal = true, .seconds = 0, .device = device},
                                 [](Progress& progress) { progress.step(); });
  unsetenv("NO_COLOR");
  INFO(text);
  const std::size_t bar = text.find("\n\033[K") + 4,
                    end = text.find("  4 MiB of 4 MiB reserved", bar);
  REQUIRE(end != std::string::npos);
  CHECK(text.substr(bar, end - bar) == std::string(end - bar, 'T'));  // temporary, all of it
  CHECK(text.find("\033[A", end) - bar == 79);
  CHECK(matches(shown(2, {.device = device}, [](Progress& progress) { progress.step(); }),
                "1/2  50 %" + rate + "  0.0 s  4 MiB of 4 MiB reserved, peak 4 MiB\n"));
}

TEST_CASE("the bar of progress has each category, then what is reserved, of the most ever reserved",
          "[progress][host]") {
  const Device device = Device::simulated("h200", std::size_t{1} << 30);
  const auto mib = [&](std::int64_t count) {
    return Tensor::zeros({count << 18}, DType::f32, device);
  };
  const auto bar = [&](bool coloured) {
    coloured ? setenv("NO_COLOR", "", 1) : setenv("NO_COLOR", "1", 1);
    std::ostringstream out;
    Progress progress(1, {.out = &out, .terminal = true, .seconds = 0, .device = device});
    progress.step();
    unsetenv("NO_COLOR");
    const std::string text = out.str();
    const std::size_t begin = text.find("\n\033[K") + 4;
    progress.clear();
    progress.finish();
    CHECK(out.str().starts_with(text + "\r\033[J\r\033[K1/1"));
    CHECK(out.str().ends_with(" s\n\033[K"));  // takes the bar off
    return text.substr(begin, text.find("  1", begin) - begin);
  };
  const auto times = [](std::size_t count, const std::string& what) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += what;
    return all;
  };
  const Parameters parameters(device);
  parameters.declare("w", {1 << 19}, initializers::zeros());  // 2 MiB
  Tensor freed = mib(8), gone = mib(16);
  const Tensor held = mib(8);
  gone = {};
  memory::release_cached(device);
  freed = {};
  // 2 MiB of parameters and 8 of a temporary, 8 free, of 34.
  const std::string memory = "  10 MiB of 18 MiB reserved, peak 34 MiB";
  const std::size_t columns = 79 - memory.size(),
                    ends[] = {(columns * 2 + 17) / 34, (columns * 10 + 17) / 34,
                              (columns * 18 + 17) / 34};
  CHECK(bar(false) == times(ends[0], "P") + times(ends[1] - ends[0], "T") +
                          times(ends[2] - ends[1], ".") + times(columns - ends[2], " "));
  CHECK(bar(true) == "\033[34m" + times(ends[0], "\u2588") + "\033[31m" +
                         times(ends[1] - ends[0], "\u2588") + "\033[0m" +
                         times(ends[2] - ends[1], ".") + times(columns - ends[2], " "));
}

TEST_CASE("progress on a terminal is one line, of 79 columns at most", "[progress][host]") {
  const auto twice = [](Progress& progress) {
    progress.step();
    progress.step();
  };
  const std::string line = "\r\033[K" + std::string(79, 'x');
  CHECK(shown(0, {.label = std::string(90, 'x'), .terminal = true, .seconds = 0}, twice) ==
        line + line + line + "\n");
  const auto once = [](Progress& progress) { progress.step(1.5); };
  CHECK(matches(shown(0, {.terminal = true, .seconds = 0}, once),
                "\r\033\\[K1  loss 1.5" + rate + "\r\033\\[K1  loss 1.5" + rate + "  0.0 s\n"));
}

TEST_CASE("progress fits a terminal of 40 columns, and ^C is echoed at a line's beginning",
          "[progress][host]") {
  const winsize size = {.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  int here = -1, there = -1;
  REQUIRE(openpty(&here, &there, nullptr, nullptr, &size) == 0);
  const int before = dup(STDERR_FILENO);
  dup2(there, STDERR_FILENO);
  {
    Progress progress(0, {.label = std::string(90, 'x'),
                          .seconds = 0,
                          .device = Device::simulated("h200", 1 << 30)});
    progress.step();
  }
  dup2(before, STDERR_FILENO);
  close(there);
  std::string text;
  for (char next = 0; read(here, &next, 1) == 1;) text += next;
  close(here);
  close(before);
  CHECK(matches(text,
                "\r\033\\[Kx{39}\r\n\033\\[K(\033\\[0m)?[^\033]{1,39}\033\\[A\r"
                "\r\033\\[Kx{39}\r\n\033\\[K"));
}

TEST_CASE("progress has a line every 0.1 seconds on a terminal, every 10 elsewhere",
          "[progress][host]") {
  std::ostringstream terminal, plain;
  Progress often(0, {.out = &terminal, .terminal = true}), seldom(0, {.out = &plain});
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  often.step();
  seldom.step();
  CAPTURE(terminal.str());
  CHECK(matches(terminal.str(), "\r\033\\[K1  [0-9]\\.[0-9][0-9] steps/s"));
  CHECK(plain.str().empty());
}

TEST_CASE("progress has no more lines than the time that has passed has room for",
          "[progress][host]") {
  using Clock = std::chrono::steady_clock;
  std::ostringstream out;
  const Clock::time_point start = Clock::now();
  Progress progress(0, {.out = &out, .seconds = 0.05});
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  for (int i = 0; i < 100; ++i) progress.step();
  const std::string text = out.str();
  const double passed = std::chrono::duration<double>(Clock::now() - start).count();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  CHECK(lines >= 1);
  CHECK(static_cast<double>(lines) <= passed / 0.05);
}

TEST_CASE("durations have two digits or three, of the unit that suits", "[progress][host]") {
  const std::pair<double, const char*> cases[] = {
      {0, "0.0 s"},    {9.94, "9.9 s"},   {9.96, "10 s"},  {119.4, "119 s"},  {119.6, "2 min"},
      {600, "10 min"}, {7169, "119 min"}, {7171, "2.0 h"}, {36'000, "10.0 h"}};
  for (const auto& [seconds, text] : cases) CHECK(detail::duration_text(seconds) == text);
}

TEST_CASE("steps after the last line of progress show nothing", "[progress][host]") {
  std::ostringstream out;
  Progress progress(2, {.out = &out, .seconds = 0});
  progress.step();
  progress.finish();
  const std::string before = out.str();
  progress.step();
  progress.finish();
  CHECK(out.str() == before);
}

TEST_CASE("progress cuts between characters, and counts columns", "[progress][host]") {
  const auto cut = [](const std::string& label) {
    const std::string begin = "\r\033[K",
                      text = shown(0, {.label = label, .terminal = true, .seconds = 1000},
                                   [](Progress&progress) { progress.step(); });
    REQUIRE(text.starts_with(begin));
    return text.substr(begin.size(), text.size() - begin.size() - 1);
  };
  const auto times = [](int n, const std::string& text) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  CHECK(cut(times(90, "\u00e9")) == times(79, "\u00e9"));              // two bytes a character
  CHECK(cut("x" + times(60, "\u6f22")) == "x" + times(39, "\u6f22"));  // two columns wide
  CHECK(cut("xy" + times(60, "\u6f22")) == "xy" + times(38, "\u6f22"));
  CHECK(cut(times(60, "\U0001f642")) == times(39, "\U0001f642"));
  CHECK(cut(times(40, "\u00e9")).starts_with(times(40, "\u00e9") + " 1  "));
}

TEST_CASE("progress of a loss that is no number says nan, whatever its sign", "[progress][host]") {
  for (const double sign : {1., -1.}) {
    const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    CHECK(matches(shown(1, {}, [nan](Progress& progress) { progress.step(nan); }),
                  "1/1  100 %  loss nan" + rate + "  0.0 s\n"));
  }
}

TEST_CASE("progress that cannot be shown stops nothing", "[host]") {
  struct Closed final : std::streambuf {};  // takes no characters
  Closed closed;
  std::ostream out(&closed);
  Progress progress(1, {.out = &out});
  progress.step();
  out.exceptions(std::ios::badbit);
}

TEST_CASE("progress has lines in a stream of one's own, though messages go to a terminal",
          "[host]") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return;  // no terminals here
  const int messages = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  std::ostringstream out;
  Progress progress(1, {.out = &out, .seconds = 0});
  dup2(messages, STDERR_FILENO);
  close(messages);
  close(terminal);
  progress.step();
  CHECK(out.str().starts_with("1/1  100 %"));
}

TEST_CASE("progress of fewer than no steps is refused", "[progress][host]") {
  CHECK_ERROR(Progress(-1), Error, "[progress] steps = -1 is below 0");
  CHECK_ERROR(Progress(1, {.seconds = -1}), Error, "[progress] seconds = -1");
  CHECK_ERROR(Progress(1, {.seconds = std::nan("")}), Error, "is not at least 0");
}

}  // namespace ebb::tests
