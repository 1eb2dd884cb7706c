// Recordings of a program's memory events, and the files they write.
#include "ebb/core/memory/recording.h"

#include <nlohmann/json.hpp>
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using namespace ebb::literals;
using memory::EventKind;
using memory::RecordedEvent;
using memory::Recording;
using Json = nlohmann::json;

namespace {

std::size_t count(const std::vector<RecordedEvent>& events, EventKind kind) {
  std::size_t found = 0;
  for (const RecordedEvent& event : events) found += event.kind == kind ? 1 : 0;
  return found;
}

// Whether times of two readings are of one event: each reading measures the clock's rate again.
bool is_close(std::int64_t one, std::int64_t other) { return std::abs(one - other) < 100'000; }

void train(const Device& device, int steps, const std::function<void()>& stepped) {
  for (int i = 0; i < steps; ++i) {
    const Tensor x = Tensor::full({256}, 2, DType::f32, device).with_grad();
    Tensor loss = sum(square(x * 3) * x);
    loss.backward();
    stepped();
  }
}

}  // namespace

TEST_CASE("a recording follows a program: what is held after each event, marks and steps") {
  const Device device = Device::cpu();
  const Tensor before = Tensor::zeros({1000}, DType::f32, device);
  const std::size_t held = memory::stats(device).allocated.current;
  memory::reset_peaks(device);
  Recording recording(device);
  recording.mark("begin");
  train(device, 3, [&] { recording.step(); });
  recording.mark("end");
  const std::vector<RecordedEvent> events = recording.events();
  CHECK(count(events, EventKind::mark) == 2);
  CHECK(count(events, EventKind::step) == 3);
  CHECK(count(events, EventKind::allocate) == count(events, EventKind::free));
  CHECK(count(events, EventKind::allocate) >= 12);
  CHECK(count(events, EventKind::recategorise) > 0);  // to activation, by the tape
  CHECK(recording.dropped() == 0);
  REQUIRE(events.front().kind == EventKind::mark);
  CHECK(std::string(events.front().operator_name) == "begin");
  CHECK(events.front().allocated_bytes == held);
  CHECK(events.back().allocated_bytes == held);
  CHECK(events.back().reserved_bytes == memory::stats(device).reserved.current);
  std::size_t peak = 0;
  bool names_line = false;
  for (const RecordedEvent& event : events) {
    peak = std::max(peak, event.allocated_bytes);
    names_line |= event.kind == EventKind::allocate &&
                  std::string(event.operator_name) == "square" &&
                  std::string(event.file).find("memory_recording.cpp") != std::string::npos;
  }
  CHECK(peak == memory::stats(device).allocated.peak);
  CHECK(names_line);
}

TEST_CASE("a device has one recording at a time, another device its own", "[host]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  {
    const Recording recording(device);
    CHECK_ERROR(Recording{device}, Error, "[Recording] sim:cpu is being recorded already");
    CHECK_NOTHROW(Recording(Device::simulated("cpu", 1_GiB)));
    const Tensor x = Tensor::zeros({5}, DType::f32, device);
    CHECK(count(recording.events(), EventKind::allocate) == 1);
  }
  CHECK_NOTHROW(Recording(device));
}

TEST_CASE("a recording of a device gets the events of a comparison on it", "[host]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  const Recording recording(device);
  memory::Comparison comparison(device);
  comparison.measure("zeros", [](const Device& here, memory::Marks& mark) {
    const Tensor x = Tensor::zeros({5}, DType::f32, here);
    mark("built");
  });
  CHECK(count(recording.events(), EventKind::allocate) == 1);
  CHECK(count(recording.events(), EventKind::mark) == 1);
  const tests::TemporaryFolder folder;
  comparison.write_html(folder.path("page.html"));
  comparison.write_perfetto(folder.path("trace.json"));
  comparison.write_pytorch_snapshot(folder.path("snapshot.pickle"));
}

TEST_CASE("a recording is written as JSON from which what is held can be added up", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  const Tensor before = Tensor::zeros({1000}, DType::f32, device);
  Recording recording(device, {.max_events = 50});
  recording.mark("a \"quoted\" name");
  train(device, 5, [&] { recording.step(); });
  recording.mark("end");
  recording.write_json(folder.path("memory.json"));
  const Json json = Json::parse(tests::contents_of(folder.path("memory.json")));
  CHECK(json["format"] == "ebb memory recording");
  CHECK(json["version"] == 2);
  CHECK(json["device"] == "sim:cpu");
  CHECK(json["dropped"] == recording.dropped());
  CHECK(json["dropped"] > 0);
  REQUIRE(json["sample_columns"] ==
          Json({"begin", "end", "events", "steps", "peak", "peak_reserved", "held", "reserved"}));
  const memory::EventLog::Reading reading = recording.log()->read();
  REQUIRE(json["samples"].size() == reading.samples.size());
  for (std::size_t i = 0; i < reading.samples.size(); ++i) {
    const Json& row = json["samples"][i];
    const memory::Sample& sample = reading.samples[i];
    REQUIRE(is_close(row[0], sample.begin));
    REQUIRE(is_close(row[1], sample.end));
    REQUIRE(row[2] == sample.events);
    REQUIRE(row[3] == sample.steps);
    REQUIRE(row[4] == Json(sample.peak.by_category));
    REQUIRE(row[5] == sample.peak_reserved);
    REQUIRE(row[6] == Json(sample.after.allocated));
    REQUIRE(row[7] == sample.after.reserved);
  }
  REQUIRE(json["marks"].size() == 1);
  CHECK(json["tags"][json["marks"][0][1].get<std::size_t>()]["operator"] == "a \"quoted\" name");
  const std::vector<RecordedEvent> events = recording.events();
  REQUIRE(json["events"].size() == events.size());
  REQUIRE(json["columns"] ==
          Json({"nanoseconds", "kind", "address", "bytes", "category", "old_category", "tag"}));
  std::int64_t held = 0;
  for (const auto& [category, bytes] : json["before"]["allocated_bytes"].items())
    held += bytes.get<std::int64_t>();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Json& row = json["events"][i];
    const RecordedEvent& event = events[i];
    const std::string kind = json["kinds"][row[1].get<std::size_t>()];
    if (kind == "allocate") held += row[3].get<std::int64_t>();
    if (kind == "free") held -= row[3].get<std::int64_t>();
    REQUIRE(held == static_cast<std::int64_t>(event.allocated_bytes));
    REQUIRE(is_close(row[0], event.nanoseconds));
    REQUIRE(row[2] == reinterpret_cast<std::uintptr_t>(event.address));
    REQUIRE(json["categories"][row[4].get<std::size_t>()] == name(event.category));
    REQUIRE(json["categories"][row[5].get<std::size_t>()] == name(event.before));
    const Json& tag = json["tags"][row[6].get<std::size_t>()];
    REQUIRE(tag["operator"] == event.operator_name);
    REQUIRE(tag["file"] == event.file);
    REQUIRE(tag["line"] == event.line);
    REQUIRE(tag["layer"] == event.layer);
  }
  std::set<Json> tags(json["tags"].begin(), json["tags"].end());
  CHECK(tags.size() == json["tags"].size());
  CHECK(tags.size() < events.size() / 2);
  CHECK_ERROR(recording.write_json(folder.path("nowhere/memory.json")), FileError, "nowhere");

  Recording empty(Device::simulated("cpu", 1_GiB));
  empty.write_json(folder.path("memory.json"));
  CHECK(Json::parse(tests::contents_of(folder.path("memory.json")))["events"].empty());
  empty.mark("a \"quoted\" \xFF name");
  empty.write_json(folder.path("memory.json"));
  CHECK(Json::parse(tests::contents_of(folder.path("memory.json")))["events"].size() == 1);
}

TEST_CASE("a recording of many events is written whole, in whatever pieces", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  Recording recording(device);
  for (int i = 0; i < 80'000; ++i) recording.step();
  const Tensor last = Tensor::zeros({1000}, DType::f32, device);
  recording.write_json(folder.path("memory.json"));
  const std::string text = tests::contents_of(folder.path("memory.json"));
  CHECK(text.size() > 1_MiB);
  const Json json = Json::parse(text);
  const std::vector<RecordedEvent> events = recording.events();
  REQUIRE(json["events"].size() == events.size());
  CHECK(is_close(json["events"].front()[0], events.front().nanoseconds));
  CHECK(json["events"].back()[3] == events.back().bytes);
}
