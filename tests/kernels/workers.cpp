#include "ebb/core/kernels/workers.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/kernels/threads.h"

using namespace ebb;
using namespace ebb::tests;

TEST_CASE("Every piece of a job is done once, whatever the number of threads", "[concurrent]") {
  std::mt19937 engine(1);
  for (int threads : {1, 2, 3, 8}) {
    const Threads here(threads);
    for (int repeat = 0; repeat < 400; ++repeat) {
      const std::int64_t most = repeat % 10 == 0 ? 2000 : 12;
      const auto pieces = std::uniform_int_distribution<std::int64_t>(0, most)(engine);
      std::vector<int> times(static_cast<std::size_t>(pieces));
      Workers::instance().run(
          pieces, [&](std::int64_t piece) { ++times[static_cast<std::size_t>(piece)]; });
      CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST_CASE("What a job wrote is there when run returns", "[concurrent]") {
  const Threads here(3);
  std::vector<std::int64_t> data(64);
  for (std::int64_t round = 0; round < 2000; ++round) {
    Workers::instance().run(16, [&](std::int64_t piece) {
      for (std::int64_t i = 0; i < 4; ++i) data[static_cast<std::size_t>(4 * piece + i)] += piece;
    });
    CHECK(data[63] == 15 * (round + 1));
  }
}

TEST_CASE("A job started within a piece, or beside another job, runs all the same",
          "[concurrent]") {
  const Threads here(3);
  std::atomic<std::int64_t> inner = 0;
  Workers::instance().run(8, [&](std::int64_t) {
    Workers::instance().run(5, [&](std::int64_t piece) { inner += piece; });
  });
  CHECK(inner == 80);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> sum = 0;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 300; ++repeat)
        Workers::instance().run(7, [&](std::int64_t piece) { sum += piece; });
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 4 * 300 * 21);
}

TEST_CASE("Threads that have gone to sleep wake for the next job", "[concurrent]") {
  const Threads here(4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> done = 0;
    Workers::instance().run(40, [&](std::int64_t) { ++done; });
    CHECK(done == 40);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("The number of threads is at least one") {
  CHECK_ERROR(Workers::instance().set_threads(0), Error, "at least 1 thread");
}

TEST_CASE("Denormals count as zero on a thread that asked for it") {
  std::thread([] {
    flush_denormals_on_this_thread();
    volatile float tiny = 1e-30f;
    volatile float product = tiny * 1e-10f;
#if defined(__x86_64__)
    CHECK(product == 0.0f);
#endif
  }).join();
}
