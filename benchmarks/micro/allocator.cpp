// What a free and an allocation together cost, beside malloc in the same run.
//
// "items_per_second" counts pairs. Two threads share one allocator, as eager threads of a device
// do.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
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
};

// The same with everything written down, as while a memory::Recording lives.
struct Recorded : Ebb {
  Recorded() { allocator.set_recorder(std::make_shared<EventLog>(1'000'000)); }
};

struct Malloc {
  using Handle = void*;
  Handle allocate(std::size_t bytes) { return std::malloc(bytes); }
  void free(Handle block) { std::free(block); }
};

// Sizes of a training step: small tensors, matrices, activations.
constexpr std::array<std::size_t, 8> kMixed = {512,     4096,    65536,   3 << 20,
                                               1 << 10, 4 << 20, 1 << 18, 40 << 10};

// One block freed and asked for again at once.
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

// A stream of batches: the oldest block goes when a new one comes.
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

// Every thread with a block of its own, all in one allocator.
template <class Allocator>
void contended(benchmark::State& state) {
  static std::unique_ptr<Allocator> shared;
  if (state.thread_index() == 0) shared = std::make_unique<Allocator>();
  for (auto _ : state) {
    auto block = shared->allocate(4096);
    benchmark::DoNotOptimize(block);
    shared->free(block);
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) shared.reset();
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
BENCHMARK_TEMPLATE(contended, Ebb)->Threads(2)->UseRealTime();
BENCHMARK_TEMPLATE(contended, Recorded)->Threads(2)->UseRealTime();
BENCHMARK_TEMPLATE(contended, Malloc)->Threads(2)->UseRealTime();

BENCHMARK_MAIN();
