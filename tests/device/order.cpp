// When the deferred device does what it was asked for.
#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "ebb/tests/catch.h"
#include "ebb/tests/device/deferred_fixture.h"

namespace ebb::tests {
namespace {

using Work = DeferredBackend::Work;

TEST_CASE("nothing happens on the deferred device until somebody synchronises") {
  DeferredDevice device;
  device.backend.keep_log(true);
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 3).ok());
  REQUIRE(launch_affine(device, stream.get(), x, x, {2, 1}).status.ok());
  CHECK(device.backend.log().empty());
  CHECK(device.backend.waiting() == 2);
  CHECK(device.backend.synchronise(stream.get()).ok());
  CHECK(device.backend.log().size() == 2);
  CHECK(device.backend.waiting() == 0);
}

TEST_CASE(
    "a copy to the deferred device takes the host's values as they are when it is asked for") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(2);
  std::vector<float> host = {1, 2};
  REQUIRE(device.set(stream.get(), x, host).ok());
  host = {8, 9};
  CHECK(device.values(stream.get(), x, 2) == std::vector<float>{1, 2});
}

TEST_CASE("copies and fills of the deferred device move bytes and nothing beside them") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(8);
  REQUIRE(device.set(stream.get(), x, {1, 2, 3, 4, 5, 6, 7, 8}).ok());
  REQUIRE(device.backend.copy(stream.get(), x + 4, x + 1, 2 * sizeof(float)).ok());
  REQUIRE(device.backend.fill(stream.get(), x + 6, 0, sizeof(float)).ok());
  CHECK(device.values(stream.get(), x, 8) == std::vector<float>{1, 2, 3, 4, 2, 3, 0, 8});
}

TEST_CASE("a launch on the deferred device keeps all it was given until it runs") {
  struct Scale final : Prepared {
    explicit Scale(bool& ended) : ended(ended) {}
    ~Scale() override { ended = true; }
    std::size_t bytes() const noexcept override { return sizeof *this; }
    bool& ended;
  };
  const auto scaled = [](const KernelContext& context) -> Status {
    if (static_cast<const Scale*>(context.prepared)->ended) return Status::fail("ended");
    return affine(context);
  };
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 3).ok());
  bool ended = false;
  {
    const auto prepared = detail::make_ref<Scale>(ended);
    REQUIRE(launch_affine(device, stream.get(), x, x, {2, 1}, 1, scaled, "scaled", prepared.get())
                .status.ok());
  }
  CHECK_FALSE(ended);
  CHECK(device.value(stream.get(), x) == 7);
  CHECK(ended);
}

TEST_CASE("a stream of the deferred device does its work in order, whatever others do") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    DeferredDevice device(seed);
    const auto a = device.backend.make_stream(), b = device.backend.make_stream();
    float* const x = device.floats(1);
    float* const y = device.floats(1);
    REQUIRE(device.set(a.get(), x, 0).ok());
    REQUIRE(device.set(b.get(), y, 1).ok());
    float wanted_x = 0, wanted_y = 1;
    for (int i = 1; i <= 8; ++i) {
      const Affine next{2, static_cast<float>(i)};
      REQUIRE(launch_affine(device, a.get(), x, x, next).status.ok());
      REQUIRE(launch_affine(device, b.get(), y, y, next).status.ok());
      wanted_x = 2 * wanted_x + next.shift;
      wanted_y = 2 * wanted_y + next.shift;
    }
    CHECK(device.value(a.get(), x) == wanted_x);
    CHECK(device.value(b.get(), y) == wanted_y);
  }
}

// One stream writes, another reads and a third writes again. Which values the reader may see tells
// whether waits were kept.
float read_between_writes(std::uint64_t seed, bool drops_waits) {
  DeferredDevice device(seed);
  device.backend.set_drops_waits(drops_waits);
  device.backend.set_checks_order(false);
  const auto first = device.backend.make_stream(), reader = device.backend.make_stream(),
             second = device.backend.make_stream();
  float* const x = device.floats(1);
  float* const y = device.floats(1);
  bool ok = device.set(first.get(), x, 0).ok() && device.backend.synchronise(first.get()).ok();
  ok &= launch_affine(device, first.get(), x, x, {0, 1}).status.ok();
  ok &= device.backend.wait(reader.get(), first.get()).ok();
  ok &= launch_affine(device, reader.get(), y, x, {1, 10}).status.ok();
  ok &= device.backend.wait(second.get(), reader.get()).ok();
  ok &= launch_affine(device, second.get(), x, x, {0, 2}).status.ok();
  ok &= device.backend.synchronise(second.get()).ok();
  REQUIRE(ok);
  return device.value(reader.get(), y);
}

TEST_CASE(
    "waits between streams of the deferred device hold for every seed, and without them "
    "every order happens") {
  std::set<float> without;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CHECK(read_between_writes(seed, false) == 11);
    without.insert(read_between_writes(seed, true));
  }
  CHECK(without == std::set<float>{10, 11, 12});  // too early, in time, too late
}

TEST_CASE(
    "a wait of the deferred device is for what was asked before it, not for what comes after") {
  DeferredDevice device;
  const auto a = device.backend.make_stream(), b = device.backend.make_stream();
  float* const x = device.floats(1);
  device.backend.keep_log(true);
  REQUIRE(device.set(a.get(), x, 1).ok());
  REQUIRE(device.backend.wait(b.get(), a.get()).ok());
  REQUIRE(device.backend.wait(a.get(), b.get()).ok());
  REQUIRE(device.backend.fill(a.get(), x, 0, 4).ok());
  REQUIRE(device.backend.wait(b.get(), b.get()).ok());
  CHECK(device.backend.synchronise(b.get()).ok());
  CHECK(device.backend.log().at(0).name == "copy_in");
  CHECK(device.backend.synchronise(a.get()).ok());
  CHECK(device.backend.log().size() == 2);
}

std::string order_of(std::uint64_t seed) {
  DeferredDevice device(seed);
  device.backend.keep_log(true);
  std::vector<std::unique_ptr<Stream>> streams;
  float* const x = device.floats(3);
  for (std::size_t s = 0; s < 3; ++s) {
    streams.push_back(device.backend.make_stream());
    for (int i = 0; i < 3; ++i) REQUIRE(device.backend.fill(streams[s].get(), x + s, 0, 4).ok());
  }
  for (const auto& stream : streams) REQUIRE(device.backend.synchronise(stream.get()).ok());
  std::string order;
  for (const DeferredBackend::Ran& ran : device.backend.log()) order += std::to_string(ran.stream);
  return order;
}

TEST_CASE("a seed decides the order of the deferred device, and seeds differ") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(order_of(seed) == order_of(seed));
    orders.insert(order_of(seed));
  }
  CHECK(orders.size() > 5);
}

TEST_CASE("a stream of the deferred device that is never synchronised keeps a bounded amount") {
  DeferredDevice device;
  device.backend.set_most_waiting(10);
  const auto a = device.backend.make_stream(), b = device.backend.make_stream();
  float* const x = device.floats(1);
  float* const y = device.floats(1);
  REQUIRE(device.set(a.get(), x, 1).ok());
  REQUIRE(device.backend.wait(b.get(), a.get()).ok());
  REQUIRE(launch_affine(device, b.get(), y, x, {1, 0}).status.ok());
  for (int i = 0; i < 100; ++i) {
    REQUIRE(launch_affine(device, b.get(), y, y, {1, 1}).status.ok());
    REQUIRE(device.backend.waiting() <= 12);
  }
  CHECK(device.value(b.get(), y) == 101);
}

TEST_CASE("what a stream of the deferred device was asked for is done though the stream is gone") {
  DeferredDevice device;
  const auto kept = device.backend.make_stream();
  float* const x = device.floats(1);
  {
    const auto gone = device.backend.make_stream();
    REQUIRE(device.set(gone.get(), x, 5).ok());
    REQUIRE(device.backend.wait(kept.get(), gone.get()).ok());
  }
  CHECK(device.value(kept.get(), x) == 5);
}

TEST_CASE("work of the deferred device that is done at once needs nobody to synchronise") {
  DeferredDevice device;
  device.backend.set_at_once(true);
  const auto stream = device.backend.make_stream();
  REQUIRE(device.set(stream.get(), device.floats(1), 5).ok());
  CHECK(device.backend.waiting() == 0);
}

TEST_CASE("threads with streams of their own use the deferred device beside each other",
          "[concurrent]") {
  constexpr int kThreads = 4, kRounds = 200;
  DeferredDevice device;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<float*> places;
  for (int i = 0; i < kThreads; ++i) {
    streams.push_back(device.backend.make_stream());
    places.push_back(device.floats(1));
  }
  std::vector<float> results(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Stream* const stream = streams[i].get();
      bool ok = device.set(stream, places[i], 0).ok();
      for (int round = 1; round <= kRounds; ++round) {
        ok &= launch_affine(device, stream, places[i], places[i], {1, 1}).status.ok();
        ok &= device.backend.wait(stream, streams[(i + 1) % kThreads].get()).ok();
        if (round % 10 == 0) ok &= device.value(stream, places[i]) == static_cast<float>(round);
      }
      results[i] = ok ? device.value(stream, places[i]) : -1;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<float>(kThreads, kRounds));
  CHECK(device.backend.synchronise_all().ok());
}

}  // namespace
}  // namespace ebb::tests
