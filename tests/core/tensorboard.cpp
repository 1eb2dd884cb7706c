// Event files for TensorBoard, read back by protobuf.
#include "ebb/core/base/error.h"
#include "ebb/core/files/summary_writer.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/temporary_folder.h"
#if __has_include(<tensorboard.pb.h>)
#include <sys/resource.h>
#include <tensorboard.pb.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::kib;

namespace {

// The values of each tag by step. Fails for half a record.
using Curves = std::map<std::string, std::map<std::int64_t, double>>;
Curves curves_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  CHECK(files[0].find("/events.out.tfevents.") != std::string::npos);
  const std::string text = tests::contents_of(files[0]);
  Curves curves;
  double last = 0;
  for (std::size_t at = 0; at < text.size();) {
    REQUIRE(at + 16 < text.size());
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    REQUIRE(bytes <= text.size() - at - 16);
    tensorboard::Event event;
    REQUIRE(event.ParseFromString(text.substr(at + 12, bytes)));
    CHECK(event.file_version() == (at == 0 ? "brain.Event:2" : ""));
    if (at > 0) CHECK(event.wall_time() >= last);
    if (at > 0) last = event.wall_time();
    for (const auto& value : event.summary().value())
      CHECK(curves[value.tag()].emplace(event.step(), value.simple_value()).second);
    at += bytes + 16;
  }
  CHECK(std::abs(last - static_cast<double>(std::time(nullptr))) < 60);
  return curves;
}

double highest(const std::map<std::int64_t, double>& curve) {
  return std::ranges::max_element(curve, {}, [](const auto& point) { return point.second; })
      ->second;
}

}  // namespace

TEST_CASE("event files are TensorBoard's own, byte for byte but for the time", "[host]") {
  const tests::TemporaryFolder folder;
  { SummaryWriter(folder.path("run")).add_scalar("loss", 0.25, 300, 2.5); }
  const auto hex = [](const std::string& record) {
    std::string text;
    for (const char byte : record)
      for (const int digit : {byte >> 4 & 15, byte & 15}) text += "0123456789abcdef"[digit];
    return text;
  };
  const auto file = std::filesystem::directory_iterator(folder.path("run"))->path();
  const std::string text = hex(tests::contents_of(file));
  // Written by tensorboard.summary.writer.record_writer.RecordWriter of TensorBoard 2.21.
  CHECK(text.substr(0, 26) == "1800000000000000a37f4b2209");
  CHECK(text.substr(42, 30) == "1a0d627261696e2e4576656e743a32");
  CHECK(text.substr(80) ==
        "1b000000000000001a0d9e1309000000000000044010ac022a0d0a0b0a046c6f7373150000803e205d3896");
}

TEST_CASE("scalars reach their file in whole records, also after a write that fails", "[host]") {
  const tests::TemporaryFolder folder;
  const std::string runs = folder.path("runs/first");
  SummaryWriter writer(runs);
  writer.add_scalar("loss", 0, 0);
  writer.flush();
  CHECK(curves_of(runs) == Curves{{"loss", {{0, 0}}}});
  CHECK_ERROR(writer.add_scalar("\xff", 1, 1), Error, "[add_scalar] the tag");
  const std::string long_tag(5000, 'x');
  writer.add_scalar(long_tag, 2, 1);
  CHECK(curves_of(runs).size() == 1);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string why = tests::why_not_thrown<FileError>([&] { writer.flush(); },
                                                           "cannot be written: File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(why == "");
  CHECK(curves_of(runs).size() == 1);
  writer.flush();
  CHECK(curves_of(runs) == Curves{{"loss", {{0, 0}}}, {long_tag, {{1, 2}}}});
  {
    SummaryWriter other(folder.path("other"));
    for (int i = 0; i < 2; ++i) other.add_scalar("loss", i, i);
  }
  CHECK(curves_of(folder.path("other")) == Curves{{"loss", {{0, 0}, {1, 1}}}});
  const SummaryWriter one(folder.path("two")), two(folder.path("two"));
  CHECK(std::ranges::distance(std::filesystem::directory_iterator(folder.path("two"))) == 2);
  folder.file("file", "");
  CHECK_ERROR(SummaryWriter(folder.path("file/runs")), FileError, "file/runs: cannot be made: ");
}

TEST_CASE("a writer of many scalars at once keeps no more than a piece of them", "[host]") {
  const tests::TemporaryFolder folder;
  SummaryWriter writer(folder.path("run"));
  for (int step = 0; step < 30'000; ++step) writer.add_scalar("loss", 0.5, step);
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path("run")))
    bytes += file.file_size();
  CHECK(bytes > 1'000'000);
}

TEST_CASE("each step of a recording is in its event file, with the recording's bytes", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  const Tensor before = kib(5, device);
  for (const std::size_t max_events : {1000U, 20U}) {
    memory::Recording recording(device, {.max_events = max_events});
    const memory::PeakScope peak(device);
    const Tensor weight = Parameters(device).declare("w", {4}, initializers::constant(1));
    std::vector<Tensor> kept;
    for (int i = 0; i < 7; ++i) {
      if (i == 2) kib(20, device);
      sum(square(weight * 3)).backward();
      kept.push_back(kib(2, device));
      recording.step();
    }
    const std::string runs = folder.path(std::to_string(max_events));
    recording.write_tensorboard(runs + " at a step");
    CHECK(curves_of(runs + " at a step/sim:cpu")["memory/peak"].rbegin()->first == 7);
    kept.clear();
    memory::release_cached(device);
    if (recording.dropped() > 0) memory::set_limit(device, 64_MiB);
    recording.write_tensorboard(runs);
    Curves curves = curves_of(runs + "/sim:cpu");

    // The tests of recordings compare their events with the device's figures.
    std::int64_t step = 8;
    std::map<std::int64_t, double> allocated, reserved;
    const std::vector<memory::RecordedEvent> events = recording.events();
    for (auto event = events.rbegin(); event != events.rend(); ++event)
      if (event == events.rbegin() || event->kind == memory::EventKind::step) {
        allocated[step] = static_cast<double>(event->allocated_bytes);
        reserved[step--] = static_cast<double>(event->reserved_bytes);
      }
    CHECK((step == 0) == (recording.dropped() == 0));
    CHECK(std::ranges::includes(curves["memory/allocated"], allocated));
    CHECK(std::ranges::includes(curves["memory/reserved"], reserved));
    CHECK(curves["memory/allocated"].size() == curves["memory/peak"].size());
    CHECK(highest(curves["memory/peak"]) == static_cast<double>(peak.bytes()));
    CHECK(curves["memory/peak"][4] < highest(curves["memory/peak"]));
    std::map<std::int64_t, double> sums;
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
      for (const auto& [at, bytes] :
           curves[std::string("peak/") + memory::name(static_cast<memory::Category>(i))])
        sums[at] += bytes;
    CHECK(sums == curves["memory/peak"]);
    CHECK(curves.contains("memory/limit") == (recording.dropped() > 0));
  }
}

TEST_CASE("event files of a comparison are a folder for each run, with its prediction") {
  const tests::TemporaryFolder folder;
  memory::Comparison comparison(Device::cpu());
  const Tensor before = kib(5, Device::cpu());
  for (const std::int64_t size : {4, 8})
    comparison.measure("a/b", [&](const Device& here, memory::Marks& mark) {
      const Tensor x = kib(size, here);
      mark.step({});
    });
  comparison.write_tensorboard(folder.path("runs"));
  for (const auto& [name, result] : {std::pair("a_b on cpu", 0U), std::pair("a_b on cpu 2", 1U)}) {
    Curves curves = curves_of(folder.path("runs/") + name);
    CHECK(highest(curves["memory/peak"]) == highest(curves["memory/predicted_peak"]));
    CHECK(highest(curves["memory/peak"]) - curves["memory/allocated"][2] ==
          static_cast<double>(comparison.results()[result].measured.peak_bytes));
  }
  folder.file("file", "");
  CHECK_ERROR(comparison.write_tensorboard(folder.path("file")), FileError, "file/a_b on cpu");
}

TEST_CASE("writes files for the scripts that open them in other tools", "[.files]") {
  const Tensor weight =
      Parameters(Device::cpu()).scope("layer").declare("w", {64, 64}, initializers::constant(1));
  memory::Recording recording(Device::cpu());
  for (int i = 0; i < 300; ++i) {
    sum(square(weight * 3)).backward();
    recording.step();
  }
  recording.write_json("recording.json");
  recording.write_tensorboard("runs");
}
#else
TEST_CASE("event files ask for protobuf", "[host]") {
  CHECK_ERROR(ebb::SummaryWriter("runs"), ebb::Error,
              "apt-get install protobuf-compiler libprotobuf-dev");
}
#endif
