// Recordings as PyTorch's memory snapshots: their bytes equal the recording's figures.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::kib;
using Json = nlohmann::json;

namespace {

// Reads a pickle of the opcodes that snapshots have. PyTorch's page knows these.
Json unpickled(const std::string& text) {
  std::vector<Json> stack;
  std::map<std::uint64_t, Json> named;
  std::vector<std::size_t> marks;
  std::size_t at = 2;
  const auto number = [&](int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(text.at(at++))} << 8 * i;
    return value;
  };
  REQUIRE(text.substr(0, 2) == "\x80\x02");
  while (true) {
    switch (text.at(at++)) {
      case '}':
        stack.push_back(Json::object());
        break;
      case ']':
        stack.push_back(Json::array());
        break;
      case '(':
        marks.push_back(stack.size());
        break;
      case '\x8a':
        stack.push_back(number(static_cast<int>(number(1))));
        break;
      case 'h':
        stack.push_back(named.at(number(1)));
        break;
      case 'j':
        stack.push_back(named.at(number(4)));
        break;
      case 'r':
        named[number(4)] = stack.back();
        break;
      case 'X': {
        const std::size_t bytes = number(4);
        stack.push_back(text.substr(at, bytes));
        at += bytes;
        break;
      }
      case 'a': {
        Json last = std::move(stack.back());
        stack.pop_back();
        stack.back().push_back(std::move(last));
        break;
      }
      case 'u': {
        Json& object = stack.at(marks.back() - 1);
        for (std::size_t i = marks.back(); i < stack.size(); i += 2)
          object[stack[i].get<std::string>()] = stack[i + 1];
        stack.resize(marks.back());
        marks.pop_back();
        break;
      }
      case '.':
        REQUIRE(stack.size() == 1);
        return stack[0];
      default:
        FAIL("opcode " << text[at - 1]);
    }
  }
}

Json read(const std::string& file) { return unpickled(tests::contents_of(file)); }

// Bytes after each entry, the last first, counted back from the segments as PyTorch's page does.
struct Totals {
  std::vector<std::int64_t> allocated, reserved;
};

Totals totals(const Json& snapshot, std::size_t device) {
  std::map<std::uint64_t, std::uint64_t> live;
  std::int64_t allocated = 0, reserved = 0;
  std::uint64_t end = 0;  // of the segment before
  for (const Json& segment : snapshot["segments"]) {
    if (segment["device"] != device) continue;
    std::uint64_t at = segment["address"];
    CHECK((end == 0 || at > end));
    end = at + segment["total_size"].get<std::uint64_t>();
    const std::int64_t in_others = allocated;
    CHECK(end > at);
    for (const Json& block : segment["blocks"]) {
      CHECK(block["address"] == at);
      at += block["size"].get<std::uint64_t>();
      if (block["state"] == "inactive") continue;
      live[block["address"]] = block["size"];
      allocated += block["size"].get<std::int64_t>();
    }
    CHECK(at == end);
    CHECK(segment["allocated_size"] == allocated - in_others);
    reserved += segment["total_size"].get<std::int64_t>();
  }
  Totals totals;
  const Json& trace = snapshot["device_traces"][device];
  for (auto entry = trace.rbegin(); entry != trace.rend(); ++entry) {
    totals.allocated.push_back(allocated);
    totals.reserved.push_back(reserved);
    const std::string action = (*entry)["action"];
    if (action == "snapshot") continue;
    const std::int64_t size = (*entry)["size"];
    if (action == "alloc") CHECK(live.erase((*entry)["addr"]) == 1);
    if (action == "free_completed") CHECK(live.emplace((*entry)["addr"], size).second);
    if (action == "alloc") allocated -= size;
    if (action == "free_completed") allocated += size;
    if (action == "segment_map") reserved -= size;
    if (action == "segment_unmap") reserved += size;
  }
  return totals;
}

// Compares the bytes at the peak and the end; totals() counts back to the begin.
void check_totals(const Json& snapshot, const memory::Recording& recording) {
  const Totals found = totals(snapshot, 0);
  const std::vector<memory::RecordedEvent> events = recording.events();
  const auto check = [&](const std::vector<std::int64_t>& each, auto figure) {
    const auto most = std::ranges::max_element(events, {}, figure);
    CHECK(*std::ranges::max_element(each) == static_cast<std::int64_t>(std::invoke(figure, *most)));
    CHECK(each.front() == static_cast<std::int64_t>(std::invoke(figure, events.back())));
    CHECK(each.back() == static_cast<std::int64_t>(std::invoke(figure, events.front())));
  };
  check(found.allocated, &memory::RecordedEvent::allocated_bytes);
  check(found.reserved, &memory::RecordedEvent::reserved_bytes);
  // Each reading measures the clock's rate again.
  const std::int64_t last = snapshot["device_traces"][0].back()["time_us"];
  CHECK(std::abs(last - events.back().nanoseconds / 1000) < 100);
}

}  // namespace

TEST_CASE("a snapshot for PyTorch has the recording's bytes at its begin, peak and end", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  Tensor freed = kib(3, device);
  const Tensor before = kib(5, device);
  const Parameters parameters(device);
  const auto declare = [&](const char* layer) {
    parameters.scope(layer).declare("w", {500}, initializers::constant(1));
  };
  declare("before");
  memory::Recording recording(device);
  recording.mark("begin");
  for (const char* layer : {"a", "b"}) declare(layer);
  const Tensor kept = kib(100, device);
  recording.mark("a \"quoted\" \xFF name");
  for (int i = 0; i < 300; ++i) recording.mark(std::to_string(i));  // more names than one byte has
  const Tensor x = kib(1, device).with_grad();
  sum(square(x * 3) * x).backward();
  freed = {};
  Graph graph;
  const Tensor fed = graph.placeholder("fed", DType::f32, {-1});
  Session session(graph, {.device = device});
  session.run(sum(square(fed * 3) * fed), {{fed, kib(2048, device)}});
  recording.step();
  session.close();
  memory::release_cached(device);
  recording.write_pytorch_snapshot(folder.path("snapshot.pickle"));
  const Json snapshot = read(folder.path("snapshot.pickle"));
  check_totals(snapshot, recording);
  const Json& trace = snapshot["device_traces"][0];
  const auto has_frame = [&](const std::string& action, const Json& frame) {
    return std::ranges::any_of(trace, [&](const Json& entry) {
      return entry["action"] == action && std::ranges::count(entry["frames"], frame) > 0;
    });
  };
  CHECK(has_frame("snapshot", {{"filename", "run"}, {"line", 0}, {"name", "sim:cpu"}}));
  CHECK(has_frame("snapshot", {{"filename", "step"}, {"line", 1}, {"name", "ended"}}));
  CHECK(has_frame("snapshot",
                  {{"filename", "mark"}, {"line", 0}, {"name", "a \"quoted\" \uFFFD name"}}));
  for (const char* layer : {"a", "b"})
    CHECK(has_frame("alloc", {{"filename", "layer"}, {"line", 0}, {"name", layer}}));
  CHECK(has_frame("alloc", {{"filename", "category"}, {"line", 0}, {"name", "activation"}}));
  CHECK(trace[0]["category"] == "unknown");
}

TEST_CASE("a snapshot for PyTorch has segments of which pieces went back", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  Tensor first = kib(4096, device), second = kib(4096, device), third = kib(4096, device);
  second = {};
  memory::Recording recording(device);
  recording.mark("begin");
  memory::release_cached(device);
  const Tensor fourth = kib(8192, device);
  Tensor fifth = kib(8192, device);
  const Tensor sixth = kib(8192, device);
  fifth = {};
  memory::release_cached(device);
  const Tensor seventh = kib(8192, device);  // where the fifth was
  first = {};
  recording.write_pytorch_snapshot(folder.path("snapshot.pickle"));
  check_totals(read(folder.path("snapshot.pickle")), recording);
}

TEST_CASE("a snapshot of a comparison for PyTorch has a device for each run") {
  const tests::TemporaryFolder folder;
  memory::Comparison comparison(Device::cpu());
  comparison.write_pytorch_snapshot(folder.path("snapshot.pickle"));
  CHECK(read(folder.path("snapshot.pickle"))["device_traces"].empty());
  for (const std::int64_t size : {4, 8})
    comparison.measure(std::to_string(size),
                       [&](const Device& here, memory::Marks&) { kib(size, here); });
  comparison.write_pytorch_snapshot(folder.path("snapshot.pickle"));
  const Json snapshot = read(folder.path("snapshot.pickle"));
  REQUIRE(snapshot["device_traces"].size() == 2);
  CHECK(snapshot["device_traces"][1][0]["frames"][0]["name"] == "8 on cpu");
  for (const std::size_t device : {0U, 1U}) {
    const std::vector<std::int64_t> allocated = totals(snapshot, device).allocated;
    CHECK(*std::ranges::max_element(allocated) - allocated.back() ==
          static_cast<std::int64_t>(comparison.results()[device].measured.peak_bytes));
  }
  CHECK_ERROR(comparison.write_pytorch_snapshot(folder.path("nowhere/x")), FileError, "nowhere");
}
