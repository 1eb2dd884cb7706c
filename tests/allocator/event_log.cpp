#include "ebb/allocator/event_log.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/error.h"
#include "ebb/allocator/out_of_memory_observer.h"
#include "ebb/tests/allocator/faulty.h"
#include "ebb/tests/allocator/random_program.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/fault_source.h"
#include "ebb/tests/heap.h"

namespace ebb::tests {
namespace {

using namespace memory;

constexpr Tag kTag{"matmul", "model.cpp", 12, "encoder.0"};

Held held_now(const CachingAllocator& allocator) {
  const Stats stats = allocator.stats();
  Held held{.reserved = stats.reserved.current};
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    held.allocated[i] = stats.by_category[i].current;
  }
  return held;
}

Held after(const EventLog::Reading& reading) {
  Held held = reading.before;
  for (const Event& event : reading.events) held.apply(event);
  return held;
}

TEST_CASE("a log says who asked for what, when, and when it went") {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto allocator = simulated();
  const auto log = std::make_shared<EventLog>(100);
  REQUIRE(allocator->set_recorder(log));
  Block* block = allocator->allocate({.bytes = 1000, .category = Category::gradient, .tag = kTag});
  const void* address = block->data();
  log->mark("made");
  allocator->recategorise(block, Category::activation);
  allocator->free(block);
  log->step();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  allocator->release_cached();
  REQUIRE(allocator->set_recorder(nullptr));
  allocator->free(allocator->allocate({.bytes = 5}));  // of no concern to it any more

  const EventLog::Reading reading = log->read();
  const std::vector<Event>& events = reading.events;
  std::vector<EventKind> kinds;
  for (const Event& event : events) kinds.push_back(event.kind);
  CHECK(kinds == std::vector{EventKind::map, EventKind::allocate, EventKind::mark,
                             EventKind::recategorise, EventKind::free, EventKind::step,
                             EventKind::unmap});
  for (std::size_t i = 1; i < events.size(); ++i) {
    CHECK(events[i].nanoseconds >= events[i - 1].nanoseconds);
  }
  CHECK(std::chrono::nanoseconds(events.back().nanoseconds) <= Clock::now() - start);
  const Event& came = events[1];
  CHECK(came.address == address);
  CHECK(came.bytes == 1024);
  CHECK(came.category == Category::gradient);
  CHECK(reading.tags[came.tag] == kTag);
  CHECK(reading.tags[events[2].tag].operator_name == std::string("made"));
  CHECK(events[3].before == Category::gradient);
  CHECK(events[3].category == Category::activation);
  CHECK(events[4].category == Category::activation);
  CHECK(events[4].address == address);
  CHECK(events[0].bytes == allocator->profile().segment_bytes(1024));
  CHECK(events[6].bytes == events[0].bytes);
}

RandomProgram program(std::uint64_t seed, Profile profile = {}) {
  return {std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096), std::move(profile), seed};
}

TEST_CASE("what is held after all events of a log is what the figures say, pools included") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  RandomProgram random = program(1, grows ? Profile{} : in_segments());
  CachingAllocator& allocator = random.allocator();
  for (int i = 0; i < 500; ++i) random.step();
  const Held held = held_now(allocator);
  const auto log = std::make_shared<EventLog>(1'000'000);
  REQUIRE(allocator.set_recorder(log));
  for (int i = 0; i < 4'000; ++i) {
    random.step();
    if (i % 10 > 0) continue;
    const EventLog::Reading reading = log->read();
    REQUIRE(reading.before == held);
    REQUIRE(reading.dropped == 0);
    REQUIRE(after(reading) == held_now(allocator));
  }
  CHECK(log->read().events.size() > 2000);
  random.finish();
  CHECK(after(log->read()) == Held{});
}

TEST_CASE("a full log keeps its last events, counts those that went, and still adds up") {
  for (const std::size_t most : {1u, 7u, 1023u, 1024u, 1025u, 3000u}) {
    RandomProgram random = program(3);
    const auto log = std::make_shared<EventLog>(most);
    REQUIRE(random.allocator().set_recorder(log));
    for (int i = 0; i < 40; ++i) {
      for (int step = 0; step < 211; ++step) random.step();
      REQUIRE(after(log->read()) == held_now(random.allocator()));
    }
    const EventLog::Reading reading = log->read();
    INFO(most);
    CHECK(reading.events.size() == most);
    CHECK(reading.dropped > 1000);
    CHECK(reading.dropped == log->dropped());
    random.finish();
  }
  const EventLog::Reading none = EventLog(3).read();
  CHECK(none.events.empty());
  CHECK_ERROR(EventLog(0), Error, "room for at least one event");
}

TEST_CASE("a log's events are the last ones in their order, across chunks") {
  EventLog log(2500);
  for (std::size_t i = 0; i < 10'000; ++i) log.add(EventKind::map, nullptr, i, {}, {});
  const EventLog::Reading reading = log.read();
  REQUIRE(reading.events.size() == 2500);
  CHECK(reading.dropped == 7500);
  CHECK(reading.before.reserved == std::size_t{7500} * 7499 / 2);
  for (std::size_t i = 0; i < 2500; ++i) REQUIRE(reading.events[i].bytes == 7500 + i);
}

TEST_CASE(
    "what a log has dropped is in its samples: maxima, steps, marks and what was held after") {
  const std::size_t most = GENERATE(1u, 50u, 16'000u);
  CAPTURE(most);
  EventLog whole(1'000'000), log(most);
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const auto category = [&] { return static_cast<Category>(below(kCategoryCount)); };
  std::vector<std::pair<std::size_t, Category>> blocks;
  std::vector<std::size_t> segments;
  const auto take = [&](auto& list) {
    std::swap(list[below(list.size())], list.back());
    const auto taken = list.back();
    list.pop_back();
    return taken;
  };
  const auto to_both = [&](const auto& call) {
    call(whole);
    call(log);
  };
  const Held start{.allocated = {5'000, 7'000}, .reserved = 20'000};
  to_both([&](EventLog& each) { each.begin(start, std::make_shared<Mutex>()); });
  for (int i = 0; i < 20'000; ++i) {
    const Tag tag{"add", "model.cpp", static_cast<unsigned>(below(20)), below(2) ? "a" : "b"};
    switch (i < 100 ? 5 : below(7)) {  // the most of the first sample is what was held before it
      case 0:
      case 1: {
        const auto block = blocks.emplace_back(below(1000), category());
        to_both([&](EventLog& each) {
          each.add(EventKind::allocate, nullptr, block.first, block.second, tag);
        });
        break;
      }
      case 2: {
        if (blocks.empty()) break;
        const auto block = take(blocks);
        to_both([&](EventLog& each) {
          each.add(EventKind::free, nullptr, block.first, block.second, tag);
        });
        break;
      }
      case 3: {
        if (blocks.empty()) break;
        auto& block = blocks[below(blocks.size())];
        const Category old = std::exchange(block.second, category());
        to_both([&](EventLog& each) {
          each.recategorise(nullptr, block.first, old, block.second, tag);
        });
        break;
      }
      case 4: {
        const bool maps = segments.empty() || below(2);
        const std::size_t bytes = maps ? segments.emplace_back(below(1000)) : take(segments);
        const EventKind kind = maps ? EventKind::map : EventKind::unmap;
        to_both([&](EventLog& each) { each.add(kind, nullptr, bytes, {}, {}); });
        break;
      }
      case 5:
        to_both([&](EventLog& each) { each.step(); });
        break;
      default: {
        const std::string name = "mark " + std::to_string(below(30));
        to_both([&](EventLog& each) { each.mark(name); });
      }
    }
  }
  const EventLog::Reading all = whole.read(), some = log.read();
  REQUIRE(all.dropped == 0);
  REQUIRE(all.samples.empty());
  REQUIRE(some.samples.size() <= 4096);
  CHECK(some.tags.size() == 1 + 20 * 2 + 30);  // each once: of no event, of segments, lines, marks
  auto event = all.events.begin();
  auto mark = some.marks.begin();
  Held held = start;
  std::int64_t before = 0;
  const std::size_t span = some.samples.front().events;
  for (const Sample& sample : some.samples) {
    REQUIRE(sample.events <= span);
    REQUIRE((sample.events == span || &sample == &some.samples.back()));
    REQUIRE(sample.begin >= std::exchange(before, sample.end));
    REQUIRE(sample.end >= sample.begin);
    std::size_t steps = 0, reserved = held.reserved;
    Peak peak{held.allocated_bytes(), held.allocated};
    for (std::size_t i = 0; i < sample.events; ++i, ++event) {
      held.apply(*event);
      steps += event->kind == EventKind::step ? 1 : 0;
      reserved = std::max(reserved, held.reserved);
      if (held.allocated_bytes() > peak.bytes) peak = {held.allocated_bytes(), held.allocated};
      if (event->kind != EventKind::mark) continue;
      REQUIRE(std::string(all.tags[event->tag].operator_name) ==
              some.tags[mark->tag].operator_name);
      REQUIRE(mark->nanoseconds >= sample.begin);
      REQUIRE(mark++->nanoseconds <= sample.end);
    }
    REQUIRE(sample.steps == steps);
    REQUIRE(sample.peak.bytes == peak.bytes);
    REQUIRE(sample.peak.by_category == peak.by_category);
    REQUIRE(sample.peak_reserved == reserved);
    REQUIRE(sample.after == held);
  }
  CHECK(mark == some.marks.end());
  CHECK(some.before == held);
  CHECK(some.dropped + most == all.events.size());
  for (const Event& kept : some.events) {
    REQUIRE(kept.kind == event->kind);
    REQUIRE(kept.bytes == event->bytes);
    if (kept.kind != EventKind::mark) REQUIRE(some.tags[kept.tag] == all.tags[event->tag]);
    ++event;
  }
  CHECK(event == all.events.end());
}

TEST_CASE("a log in use does not grow any more, whatever it is told") {
  EventLog log(1000);
  const auto fill = [&] {
    for (int i = 0; i < 200'000; ++i) log.mark("a moment of its own: " + std::to_string(i));
  };
  fill();
  const std::size_t before = mallinfo2().uordblks;
  fill();
  CHECK(mallinfo2().uordblks < before + (std::size_t{1} << 10));
  const EventLog::Reading reading = log.read();
  CHECK(reading.marks.size() == EventLog::kMostMarks);
  CHECK(reading.tags[reading.marks.back().tag].operator_name ==
        "a moment of its own: " + std::to_string(EventLog::kMostMarks - 1));
  CHECK(*reading.tags[reading.events.back().tag].operator_name == '\0');
}

TEST_CASE("where the host has no memory for an event, the log loses events and says how many") {
  EventLog log(100'000);
  const auto add = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) log.add(EventKind::map, nullptr, 1, {}, {});
  };
  HeapFault::arm();
  log.step();  // there is no older one that could make room
  CHECK_FALSE(HeapFault::disarm());
  CHECK(log.read().events.empty());
  CHECK(log.dropped() == 1);
  CHECK(log.read().samples.at(0).steps == 1);
  add(2048);
  HeapFault::arm();
  add(1);
  CHECK_FALSE(HeapFault::disarm());
  EventLog::Reading reading = log.read();
  CHECK(reading.dropped == 1 + 1024);
  CHECK(reading.events.size() == 1024 + 1);
  CHECK(after(reading).reserved == 2049);
  HeapFault::arm();
  log.mark("a name of some length, which needs memory");
  CHECK_FALSE(HeapFault::disarm());
  HeapFault::arm();
  for (unsigned line = 1; line <= 10; ++line)
    log.add(EventKind::map, nullptr, 1, {}, {"matmul", "model.cpp", line});
  CHECK_FALSE(HeapFault::disarm());
  reading = log.read();
  REQUIRE(reading.events.size() == 1025 + 1 + 10);
  CHECK(std::count_if(reading.events.begin() + 1025, reading.events.end(), [&](const Event& event) {
          return *reading.tags.at(event.tag).operator_name == '\0';
        }) == 2);
}

TEST_CASE("a log is read whole while other threads add to it", "[concurrent]") {
  const auto allocator = simulated();
  const auto log = std::make_shared<EventLog>(5000);
  REQUIRE(allocator->set_recorder(log));
  std::atomic<bool> done = false, torn = false;
  const auto add = [&](Category category) {
    for (std::size_t i = 0; i < 20'000; ++i) {
      allocator->free(allocator->allocate({.bytes = 512, .category = category, .tag = kTag}));
      if (i % 100 == 0) log->mark("hundred");
    }
  };
  std::thread reader([&] {
    while (!done) {
      const EventLog::Reading reading = log->read();
      std::size_t dropped = 0;
      for (const Sample& sample : reading.samples) {
        dropped += sample.events;
        if (sample.peak.bytes > 1024) torn = true;
      }
      if (dropped != reading.dropped) torn = true;
      Held held = reading.before;
      std::int64_t last = dropped ? reading.samples.back().end : 0;
      for (const Event& event : reading.events) {
        held.apply(event);
        if (held.allocated_bytes() > 1024 || std::exchange(last, event.nanoseconds) > last)
          torn = true;
      }
    }
  });
  std::thread one(add, Category::gradient), other(add, Category::activation);
  one.join();
  other.join();
  done = true;
  reader.join();
  CHECK_FALSE(torn);
  CHECK(log->read().events.size() == 5000);
  CHECK(log->dropped() == 80'000 + 400 + 1 - 5000);  // one segment was mapped
  CHECK(after(log->read()).allocated_bytes() == 0);
}

// Calls a function of the test while memory is being committed.
class MeanwhileSource final : public ForwardingSource {
 public:
  explicit MeanwhileSource(std::function<void()> call)
      : ForwardingSource(std::make_shared<SimulatedSource>(std::size_t{1} << 30, 4096)),
        call_(std::move(call)) {}
  bool commit(void* at, std::size_t bytes) noexcept override {
    call_();
    return ForwardingSource::commit(at, bytes);
  }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    call_();
    return ForwardingSource::decommit(at, bytes);
  }

 private:
  std::function<void()> call_;
};

TEST_CASE("a log that begins while memory is on its way adds up", "[concurrent]") {
  const auto log = std::make_shared<EventLog>(1000);
  CachingAllocator* recorded = nullptr;
  std::vector<std::thread> threads;
  const auto begin_elsewhere = [&] {
    if (!recorded) return;
    threads.emplace_back([&log, recorded] { recorded->set_recorder(log); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it may begin now, or wait
    recorded = nullptr;
  };
  CachingAllocator allocator(std::make_unique<MeanwhileSource>(begin_elsewhere), Profile{});
  const auto pool = allocator.make_pool("session");
  const auto check = [&](const std::function<void()>& maps) {
    recorded = &allocator;
    maps();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    CHECK(after(log->read()) == held_now(allocator));
    allocator.set_recorder(nullptr);
  };
  Block* block = nullptr;
  check([&] { block = allocator.allocate({.bytes = 3 << 20}); });
  check([&] { pool->allocate({.bytes = 5 << 20}); });
  allocator.free(block);
  check([&] { allocator.release_cached(); });
  check([&] { pool->close(); });
}

TEST_CASE("an observer hears of each OutOfMemory before it is thrown, outside the lock") {
  const auto allocator = simulated();
  const auto log = std::make_shared<EventLog>(10);
  REQUIRE(allocator->set_recorder(log));
  allocator->set_limit(std::size_t{2} << 20);
  Block* held = allocator->allocate({.bytes = 512, .tag = kTag});
  const auto pool = allocator->make_pool("session");
  std::vector<std::string> told;
  memory::detail::set_out_of_memory_observer([&](const memory::detail::OutOfMemoryReport& report) {
    told.push_back(report.facts.pool);
    CHECK(report.recorder == log);
    REQUIRE(report.holders.size() == 1);
    CHECK(report.holders[0].bytes == allocator->allocated_bytes());
    CHECK(allocator->stats().allocations == 1);  // takes the lock
  });
  CHECK_THROWS_AS(allocator->allocate({.bytes = 4 << 20}), OutOfMemory);
  CHECK_THROWS_AS(pool->allocate({.bytes = 4 << 20}), OutOfMemory);
  memory::detail::set_out_of_memory_observer({});
  CHECK_THROWS_AS(allocator->allocate({.bytes = 4 << 20}), OutOfMemory);
  CHECK(told == std::vector<std::string>{"", "session"});
  allocator->free(held);
}

}  // namespace
}  // namespace ebb::tests
