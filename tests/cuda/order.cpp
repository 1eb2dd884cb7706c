// Order of work: copies from and to the host, and captures beside other threads.
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// A launch that calls a function on the host.
Launch launch_of(const std::function<Status()>& function) {
  Launch launch;
  launch.run = [](const KernelContext& context) {
    return (*static_cast<const std::function<Status()>*>(context.workspace))();
  };
  launch.context.workspace = const_cast<std::function<Status()>*>(&function);
  launch.name = "function";
  return launch;
}

// Whether a stream can be captured while another thread calls act(). If act() has to wait for the
// capture to end, it begins during the capture and ends after it.
bool captures_beside(const Device& device, Stream* stream, const std::function<void()>& act) {
  std::atomic<bool> begins = false, ends = false;
  std::thread other([&] {
    while (!begins) std::this_thread::yield();
    act();
    ends = true;
  });
  const std::function<Status()> while_captured = [&]() -> Status {
    begins = true;
    for (int i = 0; i < 100 && !ends; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return {};
  };
  const Launch launch = launch_of(while_captured);
  const char* problem = nullptr;
  const auto capture = device.runtime().capture(stream, {&launch, 1}, problem);
  begins = true;
  other.join();
  INFO(std::string(problem ? problem : ""));
  CHECK(capture);
  return capture != nullptr;
}

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 7 + seed * 31);
  return values;
}

// Calls of two merged kernels: the kernel's name and the number of launches.
std::vector<std::pair<char, std::size_t>> calls;
template <char kName>
Status note(std::span<const Launch> launches) {
  calls.emplace_back(kName, launches.size());
  return {};
}

}  // namespace

TEST_CASE("a capture is not disturbed by a thread that waits for its stream") {
  const Machine machine;
  const Device device = own_cuda();
  Runtime& runtime = device.runtime();
  const LentStream captured(runtime), other(runtime);
  const Held memory(runtime.allocator(), 64);
  CHECK(captures_beside(device, captured.get(), [&] {
    runtime.wait(other.get(), captured.get());
    runtime.fill(other.get(), memory.data(), 5, 64);  // executed, not captured
  }));
  std::byte value = {};
  runtime.copy_out(other.get(), &value, memory.data() + 63, 1);
  CHECK(value == std::byte{5});
}

TEST_CASE("a capture is not disturbed by a thread that allocates, or gives memory back") {
  const Machine machine;
  for (const char* kind : {"virtual", "plain"}) {
    INFO(kind);
    const Variable variable("EBB_CUDA_MEMORY", kind);
    const Device device = own_cuda();
    Runtime& runtime = device.runtime();
    const LentStream captured(runtime);
    std::size_t released = 0;
    CHECK(captures_beside(device, captured.get(), [&] {
      { const Held memory(runtime.allocator(), 8 << 20), locked(*runtime.staging(), 8 << 20); }
      released = memory::release_cached(device).returned_bytes;
    }));
    CHECK(released >= 8 << 20);
    runtime.synchronise(captured.get());
  }
}

TEST_CASE("a capture that fails leaves its stream as it was") {
  const Machine machine;
  const Device device = own_cuda();
  Runtime& runtime = device.runtime();
  const LentStream stream(runtime);
  const Held memory(runtime.allocator(), 64);
  const std::function<Status()> refuse = [] { return Status::refuse("no such kernel"); };
  const Launch launch = launch_of(refuse);
  const std::uint64_t graphs = machine.statistics().graphs;
  const char* problem = nullptr;
  CHECK_FALSE(runtime.capture(stream.get(), {&launch, 1}, problem));
  CHECK(std::string(problem) == "no such kernel");
  runtime.fill(stream.get(), memory.data(), 3, 64);
  std::byte value = {};
  runtime.copy_out(stream.get(), &value, memory.data() + 7, 1);
  CHECK(value == std::byte{3});
  CHECK(machine.statistics().graphs == graphs);
}

TEST_CASE("what is copied to the device may be written over at once, wherever it lies") {
  const Machine machine;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    machine->set_seed(seed);
    const Device device = own_cuda();
    Runtime& runtime = device.runtime();
    const LentStream stream(runtime);
    // Exceeds the page-locked memory for small copies, in number or in size.
    for (const std::size_t bytes :
         {std::size_t{53000}, std::size_t{64} << 10, std::size_t{200000}}) {
      constexpr std::size_t kCopies = 24;
      const Held memory(runtime.allocator(), kCopies * bytes), locked(*runtime.staging(), bytes);
      for (std::size_t i = 0; i < kCopies; ++i) {
        const std::vector<std::byte> values = pattern(bytes, i);
        std::memcpy(locked.data(), values.data(), bytes);
        runtime.copy_in(stream.get(), memory.data() + i * bytes, locked.data(), bytes);
      }
      std::vector<std::byte> got(bytes);
      for (std::size_t i = 0; i < kCopies; ++i) {
        runtime.copy_out(stream.get(), got.data(), memory.data() + i * bytes, bytes);
        CHECK(got == pattern(bytes, i));
      }
    }
  }
}

TEST_CASE("what is copied from the device is there at once, in page-locked memory as well") {
  const Machine machine;
  const Device device = own_cuda();
  Runtime& runtime = device.runtime();
  const LentStream stream(runtime);
  const Held memory(runtime.allocator(), 256), locked(*runtime.staging(), 256);
  for (unsigned char value = 1; value < 20; ++value) {
    runtime.fill(stream.get(), memory.data(), value, 256);
    runtime.copy_out(stream.get(), locked.data(), memory.data(), 256);
    CHECK(locked.data()[255] == std::byte{value});
  }
}

TEST_CASE(
    "launches side by side are one call of the kernel that they have in common, and no other") {
  const Machine machine;
  const Device device = own_cuda();
  const LentStream stream(device.runtime());
  const std::function<Status()> alone = [] {
    calls.emplace_back('-', 1);
    return Status{};
  };
  std::vector<Launch> launches(7, launch_of(alone));
  const MergedKernel kernels[] = {note<'a'>, note<'a'>, note<'b'>, note<'b'>,
                                  nullptr,   note<'a'>, note<'b'>};
  for (std::size_t i = 0; i < launches.size(); ++i) launches[i].run_merged = kernels[i];
  calls.clear();
  const Launched launched = device.runtime().run(stream.get(), launches);
  CHECK(launched.status.ok());
  CHECK(launched.count == launches.size());
  using Calls = std::vector<std::pair<char, std::size_t>>;
  CHECK(calls == Calls{{'a', 2}, {'b', 2}, {'-', 1}, {'-', 1}, {'-', 1}});
}
