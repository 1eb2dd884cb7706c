#include "ebb/allocator/mutex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/peak_scope.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {
namespace {

using namespace memory;

constexpr std::size_t kThreads = 4;

template <class Function>
void in_threads(std::size_t count, const Function& function) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t) threads.emplace_back([&function, t] { function(t); });
  for (std::thread& thread : threads) thread.join();
}

// visit() stays inside for a moment and returns whether the visitor was alone.
template <class AnyMutex>
struct Room {
  AnyMutex mutex;
  std::size_t visits = 0;  // plain: a race here is an error to the thread sanitizer
  std::atomic<std::size_t> inside = 0;

  bool visit(std::size_t visitor) {
    const Guard guard(mutex);
    ++visits;
    bool alone = true;
    for (int i = 0; i < 4; ++i) {
      inside.store(visitor, std::memory_order_relaxed);
      for (volatile int pause = 0; pause < 8;) pause = pause + 1;
      alone &= inside.load(std::memory_order_relaxed) == visitor;
    }
    return alone;
  }
};

TEMPLATE_TEST_CASE("no two threads are ever inside a mutex", "[concurrent]", Mutex, FairMutex) {
  constexpr std::size_t kVisits = 20'000;
  Room<TestType> room;
  std::atomic<std::size_t> intrusions = 0;
  in_threads(kThreads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kVisits; ++i) {
      if (!room.visit(thread)) ++intrusions;
      if (i % 512 == thread) std::this_thread::yield();
    }
  });
  CHECK(intrusions == 0);
  CHECK(room.visits == kThreads * kVisits);
}

// Whether a thread sleeps, by its state in /proc.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end_of_name = text.rfind(')');
  return end_of_name != std::string::npos && end_of_name + 2 < text.size() &&
         text[end_of_name + 2] == 'S';
}

// Two threads take turns: if a waiter is forgotten, both wait for ever.
TEMPLATE_TEST_CASE("nobody who waits for a mutex is forgotten", "[concurrent]", Mutex, FairMutex) {
  TestType mutex;
  int turn = 0;
  in_threads(2, [&](std::size_t thread) {
    for (int done = 0; done < 2'000;) {
      {
        const Guard guard(mutex);
        if (turn == static_cast<int>(thread)) {
          turn = 1 - turn;
          ++done;
          continue;
        }
      }
      std::this_thread::yield();
    }
  });
  CHECK(turn == 0);
}

TEST_CASE("a fair mutex is had in the order in which threads came for it", "[concurrent]") {
  constexpr std::size_t kWaiting = 8;
  for (int round = 0; round < 20; ++round) {
    FairMutex mutex;
    std::vector<std::size_t> order;
    std::vector<std::thread> threads;
    mutex.lock();
    for (std::size_t t = 0; t < kWaiting; ++t) {
      // Starts the next thread only once this one sleeps: by then it has its number in the queue.
      std::atomic<pid_t> id = 0;
      threads.emplace_back([&mutex, &order, &id, t] {
        id.store(::gettid());
        const Guard guard(mutex);
        order.push_back(t);
      });
      while (id.load() == 0 || !sleeps(id.load())) std::this_thread::yield();
    }
    mutex.unlock();
    for (std::thread& thread : threads) thread.join();
    std::vector<std::size_t> expected;
    for (std::size_t t = 0; t < kWaiting; ++t) expected.push_back(t);
    CHECK(order == expected);
  }
}

// Starts a thread that wants memory on the first decommit, and waits until that thread sleeps.
class TrimmedSource final : public ForwardingSource {
 public:
  TrimmedSource(std::shared_ptr<MemorySource> upstream, std::function<void()> wants_memory)
      : ForwardingSource(std::move(upstream)), wants_memory_(std::move(wants_memory)) {}
  void* reserve(std::size_t bytes) noexcept override {
    served_after = pieces;
    return ForwardingSource::reserve(bytes);
  }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    if (++pieces == 1) {
      std::atomic<pid_t> id = 0;
      other = std::thread([&] {
        id.store(::gettid());
        wants_memory_();
      });
      while (id.load() == 0 || !sleeps(id.load())) std::this_thread::yield();
    }
    return ForwardingSource::decommit(at, bytes);
  }

  std::thread other;
  int pieces = 0, served_after = 0;

 private:
  const std::function<void()> wants_memory_;
};

TEST_CASE("a thread that waits for memory gets it between the pieces of a trim", "[concurrent]") {
  std::unique_ptr<Pool> pool;
  auto owned =
      std::make_unique<TrimmedSource>(std::make_shared<SimulatedSource>(std::size_t{1} << 30, 4096),
                                      [&] { pool->allocate({.bytes = 1 << 20}); });
  TrimmedSource& source = *owned;
  CachingAllocator allocator(std::move(owned), Profile{});
  pool = allocator.make_pool("session");
  allocator.free(allocator.allocate({.bytes = 400 << 20}));
  allocator.release_cached();
  source.other.join();
  CHECK(source.pieces > 2);
  CHECK(source.served_after == 1);
  pool.reset();
}

// Not with AddressSanitizer, whose malloc waits for ever in a child that was forked while another
// thread had its lock.
#ifndef __SANITIZE_ADDRESS__

// Calls everything that takes a lock of an allocator, over and over.
void use(CachingAllocator& allocator, Pool& own, std::uint64_t seed, int calls) {
  Random random(seed);
  std::vector<Block*> live;
  Block* arena = nullptr;
  for (int i = 0; i < calls; ++i) {
    const std::size_t kind = random.below(40);
    if (kind == 0) {
      allocator.release_cached();
    } else if (kind == 1) {
      (void)allocator.holders(3);
    } else if (kind == 2) {
      (void)allocator.fragmentation();
      (void)allocator.stats();
    } else if (kind < 5) {
      if (!arena) arena = own.allocate({.bytes = 1 + random.below(1 << 20)});
      own.rest(arena);
      own.wake(arena);
    } else if (kind == 5) {
      own.free(arena);
      arena = nullptr;
    } else if (kind == 6) {
      own.suspend();
      own.resume();
    } else if (kind == 7) {
      const auto pool = allocator.make_pool("short");
      pool->allocate({.bytes = 1 + random.below(1 << 20)});
    } else if (kind == 8) {
      const PeakScope peak(allocator);
      (void)peak.bytes();
    } else if (random.below(20) < live.size()) {
      allocator.free(live.back());
      live.pop_back();
    } else {
      live.push_back(allocator.allocate({.bytes = random.bytes(), .category = random.category()}));
      allocator.recategorise(live.back(), random.category());
    }
  }
  for (Block* block : live) allocator.free(block);
  own.free(arena);
}

TEST_CASE("a child that was forked while other threads allocate can allocate too", "[concurrent]") {
  const bool on_host = GENERATE(true, false);
  CAPTURE(on_host);
  constexpr std::size_t kCapacity = std::size_t{4} << 30;
  const int rounds = on_host ? 50 : 150;  // a child copies the tables of all that is resident
  std::unique_ptr<MemorySource> source;
  if (on_host)
    source = std::make_unique<HostSource>(kCapacity);
  else
    source = std::make_unique<SimulatedSource>(kCapacity, 4096);
  CachingAllocator allocator(std::move(source), Profile{});
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&allocator, &done, t] {
      const auto pool = allocator.make_pool("session");
      for (std::uint64_t i = 0; !done; ++i) use(allocator, *pool, 3 * i + t, 50);
    });
  int failed = 0;
  const auto pool = allocator.make_pool("of both");
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // ends one that waits for ever
      const std::size_t before = allocator.allocated_bytes();
      use(allocator, *pool, static_cast<std::uint64_t>(round), 50);
      ::_exit(allocator.allocated_bytes() == before ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    if (status != 0) {
      UNSCOPED_INFO("round " << round << ": status " << status);
      if (++failed == 3) break;  // each takes a minute
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(allocator.allocated_bytes() == 0);
}
#endif

TEST_CASE("totals are exact and figures return to zero after many threads", "[concurrent]") {
  const bool grows = GENERATE(true, false);
  CAPTURE(grows);
  CachingAllocator allocator(std::make_unique<SimulatedSource>(std::size_t{1} << 30, 4096),
                             grows ? Profile{} : in_segments());
  std::array<std::size_t, kThreads> requested{};
  in_threads(kThreads, [&](std::size_t t) {
    Random random(100 + t);
    const auto pool = allocator.make_pool("session");
    std::vector<Block*> live, pooled;
    for (int i = 0; i < 8'000; ++i) {
      PeakScope peak(allocator);
      if (random.below(30) < live.size()) {
        allocator.free(live.back());
        live.pop_back();
      } else {
        const std::size_t bytes = random.bytes();
        requested[t] += bytes;
        live.push_back(allocator.allocate({.bytes = bytes, .category = random.category()}));
        allocator.recategorise(live.back(), random.category());
      }
      if (random.one_in(50))
        requested[t] += 3000, pooled.push_back(pool->allocate({.bytes = 3000}));
      if (random.one_in(300)) allocator.release_cached();
      if (random.one_in(300) && !pooled.empty()) pool->free(pooled.back()), pooled.pop_back();
      if (random.one_in(100)) (void)allocator.holders(3);
      if (peak.bytes() > allocator.stats().allocated.peak) FAIL_CHECK("a scope above the peak");
    }
    for (Block* block : live) allocator.free(block);
  });
  std::size_t total = 0;
  for (const std::size_t each : requested) total += each;
  allocator.release_cached();
  const Stats stats = allocator.stats();
  CHECK(stats.requested.total == total);
  CHECK(stats.requested.current == 0);
  CHECK(stats.allocated.current == 0);
  CHECK(stats.reserved.current == 0);
  CHECK(stats.allocations == 0);
  CHECK(stats.segments == 0);
  for (const Figure& figure : stats.by_category) CHECK(figure.current == 0);
}

}  // namespace
}  // namespace ebb::tests
