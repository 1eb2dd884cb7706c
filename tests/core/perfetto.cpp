// Recordings in the Trace Event Format: counters equal the recording's figures.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::kib;
using Json = nlohmann::json;

namespace {

Json read(const std::string& file) { return Json::parse(tests::contents_of(file))["traceEvents"]; }

std::vector<Json> select(const Json& events, const std::string& phase, const std::string& name) {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event["ph"] == phase && (name.empty() || event["name"] == name)) found.push_back(event);
  return found;
}

std::size_t most(const std::vector<Json>& counter) {
  std::size_t bytes = 0;
  for (const Json& sample : counter)
    bytes = std::max(bytes, sample["args"]["bytes"].get<std::size_t>());
  return bytes;
}

}  // namespace

TEST_CASE("counters of a trace are those of the recording, and slices are its blocks", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  Tensor freed = kib(3, device);
  const Tensor before = kib(5, device);
  memory::Recording recording(device);
  const Tensor kept = kib(7, device);
  for (const char* layer : {"a", "b"})
    Parameters(device).scope(layer).declare("w", {4}, initializers::constant(1));
  recording.mark("a \"quoted\" \xFF name");
  for (int i = 0; i < 2; ++i) {
    const Tensor x = kib(1, device).with_grad();
    sum(square(x * 3) * x).backward();
    recording.step();
  }
  freed = {};
  recording.write_perfetto(folder.path("trace.json"));
  const Json trace = read(folder.path("trace.json"));
  CHECK(select(trace, "M", "process_name").at(0)["args"]["name"] == "sim:cpu");
  CHECK(select(trace, "i", "").size() == 1);
  CHECK(select(trace, "X", "step 1").at(0)["ts"] == select(trace, "i", "").at(0)["ts"]);
  CHECK(select(trace, "X", "step 2").at(0)["ts"] > select(trace, "i", "").at(0)["ts"]);

  std::vector<std::size_t> expected{8_KiB};
  for (const memory::RecordedEvent& event : recording.events())
    if (event.kind == memory::EventKind::allocate || event.kind == memory::EventKind::free)
      expected.push_back(event.allocated_bytes);
  std::vector<std::size_t> written;
  for (const Json& sample : select(trace, "C", "allocated by category")) {
    std::size_t bytes = 0;
    for (const auto& [category, part] : sample["args"].items()) bytes += part.get<std::size_t>();
    written.push_back(bytes);
  }
  for (std::size_t i = 0; const Json& sample : select(trace, "C", "allocated"))
    REQUIRE(sample["args"]["bytes"] == written.at(i++));
  written.erase(std::unique(written.begin(), written.end()),
                written.end());  // without changes of category
  CHECK(written == expected);
  CHECK(select(trace, "C", "reserved").back()["args"]["bytes"] ==
        memory::stats(device).reserved.current);

  std::map<Json, Json> open;
  std::size_t of_square = 0;
  std::set<std::string> layers;
  for (const Json& event : trace) {
    if (event["ph"] != "b" && event["ph"] != "e") continue;
    const Json key = {event["id2"], event["cat"], event["name"]};
    if (event["ph"] == "b") {
      CHECK(open.emplace(key, event).second);
      layers.insert(event["args"]["layer"].get<std::string>());
      if (event["name"] == "square" && event["cat"] == "activation") ++of_square;
    }
    if (event["ph"] == "e") {
      REQUIRE(open.count(key) == 1);
      CHECK(open[key]["ts"] <= event["ts"]);
      open.erase(key);
    }
  }
  CHECK(of_square == 2);
  CHECK(layers == std::set<std::string>{"", "a", "b"});
  REQUIRE(open.size() == 1);
  CHECK(open.begin()->second["args"]["bytes"] == 7_KiB);
  CHECK(open.begin()->second["args"]["line"].get<std::string>().find("kib.h:") !=
        std::string::npos);
}

TEST_CASE("a trace of many events has few samples, the highest and the last among them", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::Recording recording(device, {.max_events = 50'000});
  for (int i = 0; i < 30'000; ++i) const Tensor passing = kib(i == 20'001 ? 9 : 1 + i % 3, device);
  const Tensor kept = kib(2, device);
  recording.write_perfetto(folder.path("trace.json"));
  const Json trace = read(folder.path("trace.json"));
  const std::vector<Json> samples = select(trace, "C", "allocated");
  CHECK(samples.size() < 40'000);
  CHECK(most(samples) == 9_KiB);
  CHECK(std::ranges::count(samples, 0, [](const Json& each) {
          return each["args"]["bytes"].get<int>();
        }) > 1);  // and not at the begin alone
  CHECK(samples.back()["args"]["bytes"] == 2_KiB);
  CHECK(select(trace, "M", "process_name").at(0)["args"]["name"] ==
        "sim:cpu, without " + std::to_string(recording.dropped()) + " earlier events");
}

TEST_CASE("a trace of a comparison has a process for each run") {
  const tests::TemporaryFolder folder;
  memory::Comparison comparison(Device::cpu());
  comparison.write_perfetto(folder.path("trace.json"));
  CHECK(read(folder.path("trace.json")).empty());
  for (const std::int64_t size : {4, 8})
    comparison.measure(std::to_string(size), [&](const Device& here, memory::Marks& mark) {
      const Tensor x = kib(size, here);
      mark.step({});
    });
  comparison.write_perfetto(folder.path("trace.json"));
  const Json trace = read(folder.path("trace.json"));
  const std::vector<Json> names = select(trace, "M", "process_name");
  REQUIRE(names.size() == 2);
  CHECK(names[1]["args"]["name"] == "8 on cpu");
  CHECK(names[0]["pid"] != names[1]["pid"]);
  CHECK(select(trace, "X", "step 1").at(1)["pid"] == names[1]["pid"]);
  CHECK_ERROR(comparison.write_perfetto(folder.path("nowhere/trace.json")), FileError, "nowhere");
}
