// Cost of one free and one allocation together, beside malloc and beside a bare mutex in the same
// run; and how long another thread waits for them while memory goes back to the device.
//
// "items_per_second" counts pairs of all threads together. Threads share one allocator, as eager
// threads of a device do.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/host_source.h"

namespace {

using namespace ebb::memory;

struct Ebb {
  using Handle = Block*;
  CachingAllocator allocator{std::make_unique<HostSource>(), Profile{}};
  Handle allocate(std::size_t bytes) { return allocator.allocate({.bytes = bytes}); }
  void free(Handle block) { allocator.free(block); }
  static void* data(Handle block) { return block->data(); }
  void give_back(Handle block) {
    allocator.free(block);
    allocator.release_cached();
  }
};

// ebb's allocator with every event logged, as while a memory::Recording lives.
struct Recorded : Ebb {
  Recorded() { allocator.set_recorder(std::make_shared<EventLog>(1'000'000)); }
};

struct Malloc {
  using Handle = void*;
  Handle allocate(std::size_t bytes) { return std::malloc(bytes); }
  void free(Handle block) { std::free(block); }
  static void* data(Handle block) { return block; }
  void give_back(Handle block) { std::free(block); }  // large: goes back to the kernel at once
};

// Lower bound for any allocator with one lock: takes the lock once for each half of a pair.
struct StandardMutex {
  using Handle = std::size_t;
  std::mutex mutex;
  std::size_t turns = 0;
  Handle allocate(std::size_t) {
    const std::lock_guard guard(mutex);
    return ++turns;
  }
  void free(Handle) {
    const std::lock_guard guard(mutex);
    --turns;
  }
};

// Sizes of a training step: small tensors, matrices, activations.
constexpr std::array<std::size_t, 8> kMixed = {512,     4096,    65536,   3 << 20,
                                               1 << 10, 4 << 20, 1 << 18, 40 << 10};

// Frees one block and allocates it again at once.
template <class Allocator>
void same(benchmark::State& state) {
  Allocator allocator;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto block = allocator.allocate(bytes);
  for (auto _ : state) {
    allocator.free(block);
    block = allocator.allocate(bytes);
    benchmark::DoNotOptimize(block);
  }
  allocator.free(block);
  state.SetItemsProcessed(state.iterations());
}

// A tape: blocks pile up in the forward pass and go in reverse order in the backward pass.
template <class Allocator>
void last_in_first_out(benchmark::State& state) {
  Allocator allocator;
  std::vector<typename Allocator::Handle> live(64);
  for (auto _ : state) {
    for (std::size_t i = 0; i < live.size(); ++i) live[i] = allocator.allocate(kMixed[i % 8]);
    for (std::size_t i = live.size(); i-- > 0;) allocator.free(live[i]);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(live.size()));
}

// A stream of batches: each new block replaces the oldest.
template <class Allocator>
void first_in_first_out(benchmark::State& state) {
  Allocator allocator;
  std::vector<typename Allocator::Handle> live(64);
  for (std::size_t i = 0; i < live.size(); ++i) live[i] = allocator.allocate(kMixed[i % 8]);
  std::size_t oldest = 0;
  for (auto _ : state) {
    allocator.free(live[oldest]);
    live[oldest] = allocator.allocate(kMixed[(oldest * 5 + 3) % 8]);
    oldest = (oldest + 1) % live.size();
  }
  for (auto block : live) allocator.free(block);
  state.SetItemsProcessed(state.iterations());
}

// Pins this thread to one processor until the end of its scope. On a busy machine, threads that
// wait for each other otherwise run in turns on one processor and never meet.
class OnProcessor {
 public:
  explicit OnProcessor(int index) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    const int wanted = index % CPU_COUNT(&before_);
    for (int processor = 0, seen = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &before_) || seen++ != wanted) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      ::sched_setaffinity(0, sizeof one, &one);
    }
  }
  ~OnProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// Every thread frees and allocates a block of its own, all in one allocator.
template <class Allocator>
void contended(benchmark::State& state) {
  static std::unique_ptr<Allocator> shared;
  const OnProcessor processor(state.thread_index());
  if (state.thread_index() == 0) shared = std::make_unique<Allocator>();
  for (auto _ : state) {
    auto block = shared->allocate(4096);
    benchmark::DoNotOptimize(block);
    shared->free(block);
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) shared.reset();
}

// Measures how long one thread's allocations wait while another gives memory back. The loop
// allocates 512 MiB, touches all of it and gives it back. `other` allocates and frees 4 KiB; only
// its pairs that overlap with a giving back count.
//
// The time is of one giving back. A long wait keeps many short ones from being tried, so the share
// of time in waits of more than 10 us stands beside "p99.9_us" and "most_us". All figures include
// time taken by other programs on the machine.
template <class Allocator>
void stall(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kBytes = 512 << 20;
  Allocator allocator;
  std::atomic<bool> is_giving_back = false, is_over = false;
  std::vector<double> waits;  // us
  double given_back = 0;      // us
  waits.reserve(1 << 24);
  std::thread other([&] {
    const OnProcessor processor(1);
    while (!is_over) {
      const bool before = is_giving_back;
      const auto start = Clock::now();
      auto block = allocator.allocate(4096);
      benchmark::DoNotOptimize(block);
      allocator.free(block);
      const std::chrono::duration<double, std::micro> wait = Clock::now() - start;
      if ((before || is_giving_back) && waits.size() < waits.capacity()) {
        waits.push_back(wait.count());
      }
    }
  });
  const OnProcessor processor(0);
  for (auto _ : state) {
    auto block = allocator.allocate(kBytes);
    auto* bytes = static_cast<volatile char*>(Allocator::data(block));
    for (std::size_t i = 0; i < kBytes; i += 4096) bytes[i] = 1;
    is_giving_back = true;
    const auto start = Clock::now();
    allocator.give_back(block);
    const std::chrono::duration<double> time = Clock::now() - start;
    is_giving_back = false;
    state.SetIterationTime(time.count());
    given_back += time.count() * 1e6;
  }
  is_over = true;
  other.join();
  if (waits.empty()) return;
  const auto at = [&](double share) {
    const auto place = static_cast<std::ptrdiff_t>(static_cast<double>(waits.size() - 1) * share);
    std::nth_element(waits.begin(), waits.begin() + place, waits.end());
    return waits[static_cast<std::size_t>(place)];
  };
  double waited = 0;
  for (const double wait : waits) waited += wait > 10 ? wait : 0;
  state.counters["waited_share"] = waited / given_back;
  state.counters["pairs"] = static_cast<double>(waits.size());
  state.counters["p50_us"] = at(0.5);
  state.counters["p99.9_us"] = at(0.999);
  state.counters["most_us"] = at(1);
}

}  // namespace

BENCHMARK_TEMPLATE(same, Ebb)->Arg(512)->Arg(64 << 10)->Arg(4 << 20);
BENCHMARK_TEMPLATE(same, Recorded)->Arg(512)->Arg(64 << 10);
BENCHMARK_TEMPLATE(same, Malloc)->Arg(512)->Arg(64 << 10)->Arg(4 << 20);
BENCHMARK_TEMPLATE(last_in_first_out, Ebb);
BENCHMARK_TEMPLATE(last_in_first_out, Recorded);
BENCHMARK_TEMPLATE(last_in_first_out, Malloc);
BENCHMARK_TEMPLATE(first_in_first_out, Ebb);
BENCHMARK_TEMPLATE(first_in_first_out, Malloc);
BENCHMARK_TEMPLATE(contended, Ebb)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();
BENCHMARK_TEMPLATE(contended, StandardMutex)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();
BENCHMARK_TEMPLATE(contended, Malloc)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();
BENCHMARK_TEMPLATE(stall, Ebb)->Iterations(10)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(stall, Malloc)->Iterations(10)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(contended, Recorded)->Threads(2)->UseRealTime();

BENCHMARK_MAIN();
