// The file that an OutOfMemory leaves behind.
#include "ebb/core/memory/snapshot.h"

#include <nlohmann/json.hpp>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/summary.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using namespace ebb::literals;
using Json = nlohmann::json;

namespace {

// Writes snapshots to this file while it lives.
struct Snapshots {
  explicit Snapshots(std::string path) { memory::snapshot_on_out_of_memory(std::move(path)); }
  ~Snapshots() { memory::snapshot_on_out_of_memory(""); }
};

Json read(const std::string& file) { return Json::parse(tests::contents_of(file)); }

Tensor mebibytes(std::int64_t count, const Device& device) {
  return Tensor::zeros({count << 18}, DType::f32, device);
}

}  // namespace

TEST_CASE("an OutOfMemory leaves a file that says what it says, and all holders", "[host]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path("snapshot.json");
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 64_MiB);
  std::vector<memory::Block*> blocks;
  for (unsigned line = 1; line <= 20; ++line)
    blocks.push_back(
        device.runtime().allocator().allocate({1_MiB, memory::Category::input, {"x", "y", line}}));
  const Snapshots snapshots(file);
  std::string message;
  try {
    mebibytes(100, device);
  } catch (const OutOfMemory& refused) {
    message = refused.what();
  }
  const Json json = read(file);
  CHECK(folder.count() == 1);
  CHECK(json["format"] == "ebb out of memory");
  CHECK(json["message"] == message);
  CHECK(json["reason"] == "device_limit");
  CHECK(json["request"]["bytes"] == 100_MiB);
  CHECK(json["request"]["file"].get<std::string>().find("memory_snapshot.cpp") !=
        std::string::npos);
  CHECK(json["pool"].is_null());
  CHECK(json["pool_stats"].is_null());
  CHECK(json["recording"].is_null());
  CHECK(json["holders"].size() == 20);
  const Json summary = Json::parse(memory::summary_json(device));
  for (const auto& [name, figure] : json["stats"].items())
    if (name != "device_free_bytes") CHECK(figure == summary[name]);
  CHECK(json["holders"] == summary["holders"]);
  for (memory::Block* block : blocks) device.runtime().allocator().free(block);
}

TEST_CASE("a snapshot of a session names its pool, and has the events of a recording", "[host]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path("snapshot.json");
  const Device device = Device::simulated("cpu", 1_GiB);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = softmax(x) * (x + 1);
  Session session(graph, {.device = device, .memory_limit = 1_MiB});
  memory::Recording recording(device);
  recording.mark("before");
  const Tensor fed = mebibytes(4, device);
  const Snapshots snapshots(file);
  CHECK_THROWS_AS(session.run(y, {{x, fed}}), OutOfMemory);
  const Json json = read(file);
  CHECK(json["reason"] == "pool_limit");
  CHECK(json["pool"] == "session");
  CHECK(json["pool_stats"]["limit_bytes"] == 1_MiB);
  CHECK(json["request"]["purpose"] == "session arena");
  CHECK(json["recording"]["format"] == "ebb memory recording");
  REQUIRE(json["recording"]["events"].size() >= 2);
  CHECK(json["recording"]["tags"][1]["operator"] == "before");  // after the empty tag
}

TEST_CASE("the last OutOfMemory has the file; with an empty path none has", "[host]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path("snapshot.json");
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 2_MiB);
  {
    const Snapshots snapshots(file);
    CHECK_THROWS_AS(mebibytes(100, device), OutOfMemory);
    CHECK_THROWS_AS(mebibytes(50, device), OutOfMemory);
    CHECK(read(file)["request"]["bytes"] == 50_MiB);
  }
  CHECK_THROWS_AS(mebibytes(30, device), OutOfMemory);
  CHECK(read(file)["request"]["bytes"] == 50_MiB);
}

TEST_CASE("a snapshot that cannot be written changes nothing about the OutOfMemory", "[host]") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 2_MiB);
  const Snapshots snapshots(folder.path("nowhere/snapshot.json"));
  CHECK_ERROR(mebibytes(100, device), OutOfMemory, "out of memory on");
  CHECK(folder.count() == 0);
  CHECK_NOTHROW(mebibytes(1, device));
}
