// All work put into a stream is waited for, by whatever call it was put there, and only once.
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/create.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Copies values through two other streams: the second waits for each value and copies it, then the
// third waits for the second. The first stream gets nothing else to do meanwhile.
struct Course {
  static constexpr std::size_t kRounds = 4, kBytes = 64;
  using Values = std::array<unsigned char, kRounds * kBytes>;

  Runtime& runtime;
  Stream *first, *second, *third;

  // put(at, value) lets the first stream fill kBytes.
  Values run(std::byte* from, std::byte* to,
             const std::function<void(std::byte* at, unsigned char value)>& put) const {
    for (std::size_t i = 0; i < kRounds; ++i) {
      put(from + i * kBytes, static_cast<unsigned char>(i + 1));
      runtime.wait(second, first);
      runtime.copy(second, to + i * kBytes, from + i * kBytes, kBytes);
    }
    runtime.wait(third, second);
    Values values;
    runtime.copy_out(third, values.data(), to, values.size());
    return values;
  }
};

// The launch of a fill kernel.
struct FillLaunch {
  FillLaunch(Stream* stream, std::byte* at, unsigned char value)
      : buffer{at, {DType::u8, {Course::kBytes}}},
        attributes(FillAttributes{static_cast<double>(value)}) {
    launch.run = full_op.cuda.run;
    launch.context.outputs = {&buffer, 1};
    launch.context.attributes = &attributes;
    launch.context.stream = stream;
  }
  FillLaunch(const FillLaunch&) = delete;
  FillLaunch& operator=(const FillLaunch&) = delete;

  Buffer buffer;
  Attributes attributes;
  Launch launch;
};

}  // namespace

TEST_CASE("whatever is put into a stream is waited for again, and before memory goes back") {
  const Machine machine;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    machine->set_seed(seed);
    const Device device = own_cuda();
    Runtime& runtime = device.runtime();
    const LentStream first(runtime), second(runtime), third(runtime), fourth(runtime);
    const Held from(runtime.allocator(), sizeof(Course::Values)),
        to(runtime.allocator(), sizeof(Course::Values)),
        given(runtime.allocator(), sizeof(Course::Values));
    Course::Values expected;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<unsigned char>(i / Course::kBytes + 1);
    runtime.copy_in(fourth.get(), given.data(), expected.data(), expected.size());
    runtime.synchronise(fourth.get());

    std::vector<std::unique_ptr<Capture>> captures;
    const std::function<void(std::byte*, unsigned char)> puts[] = {
        [&](std::byte* at, unsigned char value) {
          runtime.fill(first.get(), at, value, Course::kBytes);
        },
        [&](std::byte* at, unsigned char value) {
          std::array<unsigned char, Course::kBytes> values;
          values.fill(value);
          runtime.copy_in(first.get(), at, values.data(), values.size());
        },
        [&](std::byte* at, unsigned char) {
          runtime.copy(first.get(), at, given.data() + (at - from.data()), Course::kBytes);
        },
        [&](std::byte* at, unsigned char value) {
          const FillLaunch fill(first.get(), at, value);
          CHECK(runtime.run(first.get(), {&fill.launch, 1}).status.ok());
        },
        [&](std::byte* at, unsigned char value) {
          const FillLaunch fill(first.get(), at, value);
          const char* problem = nullptr;
          captures.push_back(runtime.capture(first.get(), {&fill.launch, 1}, problem));
          REQUIRE(captures.back());
          CHECK(runtime.replay(first.get(), *captures.back()).ok());
        },
        [&](std::byte* at, unsigned char value) {  // by another stream, which the first waits for
          runtime.fill(fourth.get(), at, value, Course::kBytes);
          runtime.wait(first.get(), fourth.get());
        }};
    for (std::size_t kind = 0; kind < std::size(puts); ++kind) {
      CAPTURE(seed, kind);
      runtime.fill(third.get(), from.data(), 0, sizeof(Course::Values));
      runtime.fill(third.get(), to.data(), 0, sizeof(Course::Values));
      runtime.synchronise(third.get());
      const Course course{runtime, first.get(), second.get(), third.get()};
      CHECK((course.run(from.data(), to.data(), puts[kind]) == expected));

      // Nothing was put into the stream since, so a second wait costs nothing.
      runtime.wait(second.get(), first.get());
      const std::uint64_t waits = machine.statistics().waits;
      runtime.wait(second.get(), first.get());
      CHECK(machine.statistics().waits == waits);

      for (int i = 0; i < 2; ++i) {
        { const Held cached(runtime.allocator(), 8 << 20); }
        puts[kind](from.data(), 1);
        CHECK(memory::release_cached(device).returned_bytes > 0);
        CHECK(machine.statistics().pending == 0);
      }
    }
  }
}
