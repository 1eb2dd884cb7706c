// A device's figures as text and as JSON.
#include "ebb/core/memory/summary.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"

using namespace ebb;
using namespace ebb::literals;
using memory::Category;
using Json = nlohmann::json;

namespace {

// Holds blocks of a device under any category and tag.
class Blocks {
 public:
  explicit Blocks(const Device& device) : allocator_(device.runtime().allocator()) {}
  ~Blocks() {
    for (memory::Block* block : blocks_) allocator_.free(block);
  }
  void add(std::size_t bytes, Category category, const memory::Tag& tag) {
    blocks_.push_back(allocator_.allocate({bytes, category, tag}));
  }

 private:
  memory::CachingAllocator& allocator_;
  std::vector<memory::Block*> blocks_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a summary says what is held, was held at most, and by whom, in 80 columns", "[host]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 512_MiB);
  { Blocks(device).add(5_MiB, Category::activation, {"tanh", "model.cpp", 3}); }
  Blocks blocks(device);
  {
    Blocks gone(device);
    gone.add(3_MiB, Category::activation, {"tanh", "model.cpp", 3});
    blocks.add(100, Category::parameter, {"declare", "model.cpp", 1});
    blocks.add(20_MiB + 1, Category::optimizer_state, {"adam", "model.cpp", 2});
  }
  const std::string text = memory::summary(device);
  CHECK(text ==
        "Memory of sim:cpu           now at the peak    own peak  ever taken\n"
        "requested              20.0 MiB                23.0 MiB    28.0 MiB\n"
        "allocated              20.0 MiB    23.0 MiB    23.0 MiB    28.0 MiB\n"
        "  parameter               512 B       512 B       512 B       512 B\n"
        "  optimizer state      20.0 MiB    20.0 MiB    20.0 MiB    20.0 MiB\n"
        "  activation                0 B     3.0 MiB     5.0 MiB     8.0 MiB\n"
        "reserved               26.0 MiB                26.0 MiB    26.0 MiB\n"
        "\n"
        "device             998.0 MiB free of 1.0 GiB, limit 512.0 MiB\n"
        "                   2 blocks alive, 2 segments reserved\n"
        "\n"
        "        held  blocks  by\n"
        "    20.0 MiB       1  adam  model.cpp:2\n"
        "       512 B       1  declare  model.cpp:1\n");
}

TEST_CASE("the CPU's summary names copies that no allocator counts", "[host]") {
  const Device cpu = Device::cpu();
  const std::size_t allocated = memory::stats(cpu).allocated.current;
  const auto copies = [&] { return Json::parse(memory::summary_json(cpu))["host_copies_bytes"]; };
  CHECK(copies() == 0);
  {
    HostBytes copy(3_MiB, "test", "a copy"), none;
    CHECK(copies() == 3_MiB);
    CHECK(memory::summary(cpu).find(" besides 3.0 MiB in copies of values\n") != std::string::npos);
    none = std::move(copy);
    copy = HostBytes(1_MiB, "test", "a copy");
    CHECK(copies() == 4_MiB);
    CHECK(Json::parse(memory::summary_json(tests::simulated_host()))["host_copies_bytes"] == 0);
  }
  CHECK(copies() == 0);
  CHECK(memory::summary(cpu).find("besides") == std::string::npos);
  CHECK(memory::stats(cpu).allocated.current == allocated);
}

TEST_CASE("a difference lists what grew, by text, largest first; what shrank is not in it",
          "[host]") {
  const std::string copy = "model.cpp";  // another address than the literal
  const std::vector<memory::Holder> before = {{{"dense", "model.cpp", 1}, 5000, 5},
                                              {{"dense", "model.cpp", 1, "head"}, 1000, 1},
                                              {{"tanh", "model.cpp", 2}, 900, 9},
                                              {{"adam", "model.cpp", 3}, 800, 1},
                                              {{"gone", "model.cpp", 4}, 700, 1}};
  const std::vector<memory::Holder> after = {{{"dense", copy.c_str(), 1}, 6024, 6},
                                             {{"dense", copy.c_str(), 1, "head"}, 1000, 1},
                                             {{"tanh", copy.c_str(), 2}, 4996, 4},
                                             {{"adam", copy.c_str(), 3}, 799, 2},
                                             {{"losses", copy.c_str(), 5}, 512, 1}};
  std::ostringstream text;
  text << memory::difference(before, after) << "; " << memory::difference(after, after);
  CHECK(text.str() ==
        "        more  blocks  by\n"
        "    +4.0 KiB      -5  tanh  model.cpp:2\n"
        "    +1.0 KiB      +1  dense  model.cpp:1\n"
        "      +512 B      +1  losses  model.cpp:5; nothing has grown");
}

TEST_CASE("a summary stays within 80 columns whatever the names, and shows where files end",
          "[host]") {
  const Device device = Device::simulated("cpu", std::size_t{1} << 60);
  const std::string path = "/home/somebody/a/rather/long/path/to/where/models/are/kept/model.cpp",
                    long_name(100, 'n');
  Blocks blocks(device);
  blocks.add(1023_GiB, Category::gradient, {"softmax_cross_entropy_backward", path.c_str(), 123});
  blocks.add(1_GiB, Category::gradient, {long_name.c_str(), path.c_str(), 123});
  blocks.add(2_GiB, Category::gradient, {"dense", path.c_str(), 4, long_name.c_str()});
  blocks.add(3_GiB, Category::gradient, {"dense", "model.cpp", 5, "encoder.3"});
  blocks.add(1_MiB, Category::gradient, {});
  const std::string text = memory::summary(device);
  for (const std::string& line : lines_of(text)) CHECK(line.size() <= 80);
  CHECK(text.find("softmax_cross_entropy_backward  ...") != std::string::npos);
  CHECK(text.find("/model.cpp:123\n") != std::string::npos);
  CHECK(text.find("  dense  layer ...nnn") != std::string::npos);
  CHECK(text.find("/model.cpp:4\n") != std::string::npos);
  CHECK(text.find("  dense  layer encoder.3, model.cpp:5\n") != std::string::npos);
  CHECK(text.find("unnamed\n") != std::string::npos);
  CHECK(lines_of(memory::summary(device, 1)).size() == lines_of(text).size() - 4);
  CHECK(memory::summary(Device::simulated("cpu", 1_GiB)).find("  by\n") == std::string::npos);
}

TEST_CASE("a summary's JSON has every figure of stats() and every holder", "[host]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  Blocks blocks(device);
  for (unsigned line = 0; line < 30; ++line)
    blocks.add(1000, line % 2 ? Category::input : Category::workspace,
               {"x", "model.cpp", line, "a.b"});
  memory::set_limit(device, 1_GiB);
  memory::CachingAllocator& allocator = device.runtime().allocator();
  allocator.free(allocator.allocate({.bytes = 9000, .category = Category::gradient}));
  allocator.free(allocator.allocate({.bytes = 90'000, .category = Category::parameter}));
  const memory::Stats stats = memory::stats(device);  // its peak had no gradient
  const Json json = Json::parse(memory::summary_json(device));
  const auto figure = [](const memory::Figure& of) {
    return Json{{"current", of.current}, {"peak", of.peak}, {"total", of.total}};
  };
  CHECK(json["device"] == "sim:cpu");
  CHECK(json["simulated"] == true);
  CHECK(json["requested_bytes"] == figure(stats.requested));
  CHECK(json["allocated_bytes"] == figure(stats.allocated));
  CHECK(json["reserved_bytes"] == figure(stats.reserved));
  CHECK(json["by_category"].size() == memory::kCategoryCount);
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i) {
    Json category = figure(stats.by_category[i]);
    category["at_peak"] = stats.at_peak[i];
    CHECK(json["by_category"][name(static_cast<Category>(i))] == category);
  }
  CHECK(json["device_free_bytes"] == stats.device_free);
  CHECK(json["device_total_bytes"] == stats.device_total);
  CHECK(json["limit_bytes"] == 1_GiB);
  CHECK(json["allocations"] == 30);
  CHECK(json["segments"] == stats.segments);
  CHECK(json["page_locked_bytes"] == figure({}));
  REQUIRE(json["holders"].size() == 30);
  CHECK(json["holders"][0] == Json({{"operator", "x"},
                                    {"file", "model.cpp"},
                                    {"line", json["holders"][0]["line"]},
                                    {"layer", "a.b"},
                                    {"bytes", 1024},
                                    {"blocks", 1}}));
  memory::set_limit(device, std::nullopt);
  CHECK(Json::parse(memory::summary_json(device))["limit_bytes"].is_null());
}
