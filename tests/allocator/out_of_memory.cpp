#include <sstream>
#include <string>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace memory;

TEST_CASE("an out-of-memory error says what was asked, what is held by whom, and a way out") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096),
                             Profile{});
  allocator.set_limit(96 << 20);
  const Tag lstm{"lstm", "train.cpp", 41}, dense{"dense", "model.cpp", 7};
  Block* a = allocator.allocate({40 << 20, Category::activation, lstm});
  Block* b = allocator.allocate({16 << 20, Category::activation, lstm});
  Block* c = allocator.allocate({12 << 20, Category::parameter, dense});
  const auto pool = allocator.make_pool("validation");
  pool->allocate({3 << 20, Category::workspace, {}});
  const OutOfMemory error = refusal_of([&] {
    allocator.allocate({64 << 20, Category::gradient, dense});
  });
  const std::string message = error.what();
  INFO(message);
  for (const char* part : {
           "out of memory on cpu: no room for 64 MiB",
           "dense (model.cpp:7) as gradient",
           "the device's limit leaves no room for 64 MiB more",
           "1 GiB",
           "reserved 71 MiB (limit 96 MiB)",
           "allocated 71 MiB, requested 71 MiB",
           "activation 56 MiB, parameter 12 MiB, workspace 3 MiB",
           "56 MiB in 2 blocks by lstm (train.cpp:41)",
           "12 MiB in 1 block by dense (model.cpp:7)",
           "cached       nothing",
           "at most 25 MiB in one request",
           "raise the limit (memory::set_limit) to 135 MiB",
       }) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
  CHECK(error.requested_bytes() == 64 << 20);
  CHECK(error.limit_bytes() == 96 << 20);
  CHECK(error.device_free_bytes() == (1024 - 71) << 20);
  CHECK(error.stats().allocated.current == 71 << 20);
  for (Block* block : {a, b, c}) allocator.free(block);
}

TEST_CASE("an out-of-memory message stays within 100 columns") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 50, 4096),
                             Profile{});
  const auto pool = allocator.make_pool("session of the validation run", std::size_t{4} << 40);
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    pool->allocate({(std::size_t{512} << 30) + 4097 * i, static_cast<Category>(i), {}});
  }
  const OutOfMemory error = refusal_of([&] { pool->allocate({.bytes = std::size_t{1023} << 30}); });
  INFO(error.what());
  std::istringstream lines(error.what());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("of a long path the message has the end, within 100 columns") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096),
                             Profile{});
  allocator.set_limit(64 << 20);
  const std::string path = "/home/somebody/" + std::string(150, 'x') + "/models/classifier.cpp";
  const std::string long_name(120, 'n');
  const Tag tag{"softmax_cross_entropy_backward", path.c_str(), 1234},
      named{long_name.c_str(), path.c_str(), 77};
  const Tag layered{"dense", path.c_str(), 5, long_name.c_str()};
  for (const Tag& by : {tag, named, layered}) {
    Block* const block = allocator.allocate({1 << 20, Category::optimizer_state, by});
    const OutOfMemory error = refusal_of([&] {
      allocator.allocate({std::size_t{2} << 30, Category::optimizer_state, by});
    });
    const std::string message = error.what(), end = "classifier.cpp:" + std::to_string(by.line);
    INFO(message);
    CHECK(message.find(end + ") as optimizer_state\n") != std::string::npos);
    CHECK(message.find(end + ")\n") != std::string::npos);
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);)
      CHECK((line.size() <= 100 || by.line == named.line));
    allocator.free(block);
  }
  CHECK(source_line(tag, 18) == "...sifier.cpp:1234");
  CHECK(source_line({"x", "a.cpp", 1}, 7) == "a.cpp:1");
  CHECK(source_line({"x", "a.cpp", 1}, 6) == "...p:1");
  CHECK(source_line({"x", "a.cpp", 1, "net.0"}, 20) == "layer net.0, a.cpp:1");
  CHECK(source_line({"x", "long/a.cpp", 1, "net.0"}, 20) == "layer net.0, ...pp:1");
}

TEST_CASE("holders are summed by tag over the cache and the pools, the largest first") {
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096),
                             Profile{});
  const auto pool = allocator.make_pool("session");
  pool->allocate({1 << 20, Category::parameter, {"dense", "a.cpp", 1}});
  Block* same = allocator.allocate({1 << 20, Category::gradient, {"dense", "a.cpp", 1}});
  Block* other = allocator.allocate({3 << 20, Category::gradient, {"dense", "a.cpp", 2}});
  Block* layer = allocator.allocate({1 << 20, Category::gradient, {"dense", "a.cpp", 1, "net"}});
  const auto holders = allocator.holders(10);
  REQUIRE(holders.size() == 3);
  CHECK(holders[0].tag.line == 2);
  CHECK(holders[0].bytes == 3 << 20);
  CHECK(holders[1].bytes == 2 << 20);
  CHECK(holders[1].blocks == 2);
  CHECK(allocator.holders(1).size() == 1);
  for (Block* each : {same, other, layer}) allocator.free(each);
}

}  // namespace
}  // namespace ebb::tests
