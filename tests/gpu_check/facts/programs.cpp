#include <algorithm>
#include <vector>

#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

// A number of tiny launches, each of which reads the result of the one before.
class Chain {
 public:
  Chain(Gpu& gpu, std::size_t count) : memory_(gpu, 2 * kApart), launches_(count) {
    const Spec one{DType::f32, {1}};
    for (std::size_t i = 0; i < 2; ++i) buffers_[i] = {memory_.data() + i * kApart, one};
    for (std::size_t i = 0; i < count; ++i)
      launches_[i] = {.run = cuda::map<functors::Sin>,
                      .context = {.inputs = {&buffers_[i % 2], 1},
                                  .outputs = {&buffers_[1 - i % 2], 1},
                                  .stream = &gpu.stream()},
                      .name = "sin"};
  }
  std::span<const Launch> launches() const noexcept { return launches_; }

 private:
  static constexpr std::size_t kApart = 512;
  const Memory memory_;
  Buffer buffers_[2];
  std::vector<Launch> launches_;
};

Json gigabytes_per_second(std::size_t bytes, const Json& microseconds) {
  return microseconds.is_number()
             ? Json(static_cast<double>(bytes) / microseconds.get<double>() / 1e3)
             : microseconds;
}

}  // namespace

Json program(Gpu& gpu) {
  constexpr std::size_t kCount = 1000;
  const Chain chain(gpu, kCount);
  Json told = {{"launches", kCount}};
  const char* problem = nullptr;
  std::unique_ptr<Capture> capture;
  const std::size_t before = gpu.free_bytes();
  told["milliseconds_to_capture"] = milliseconds(
      [&] { capture = gpu.backend().capture(&gpu.stream(), chain.launches(), problem); });
  if (!capture) throw Error(problem);
  told["takes_bytes"] = before - std::min(before, gpu.free_bytes());
  told["microseconds_launched"] = gpu.microseconds_in_stream(
      10, [&] { require(gpu.backend().run(&gpu.stream(), chain.launches()).status, "to launch"); });
  told["microseconds_replayed"] = gpu.microseconds_in_stream(
      10, [&] { require(gpu.backend().replay(&gpu.stream(), *capture), "to replay"); });
  return told;
}

Json floors(Gpu& gpu) {
  const Chain one(gpu, 1);
  const auto launch = [&] {
    require(gpu.backend().run(&gpu.stream(), one.launches()).status, "to launch");
  };
  Json told;
  told["launch_microseconds"] = gpu.microseconds_in_stream(kEmulated ? 1 : 1000, launch);
  told["launch_and_wait_microseconds"] = microseconds(100, [&] {
    launch();
    gpu.synchronise();
  });
  Backend& backend = gpu.backend();
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{64} << 10, std::size_t{64} << 20}) {
    const Memory on_device(gpu, 2 * bytes), locked(gpu.staging(), bytes);
    const std::vector<std::byte> pageable(bytes);
    Json& row = told["copies_of_" + std::to_string(bytes) + "_bytes"];
    const auto copies = [&](const char* how, const std::function<Status()>& copy) {
      const Json time = gpu.microseconds_in_stream(10, [&] { require(copy(), "to copy"); });
      row[how] = {{"microseconds", time}, {"gb_per_second", gigabytes_per_second(bytes, time)}};
    };
    copies("in_of_pageable", [&] {
      return backend.copy_in(&gpu.stream(), on_device.data(), pageable.data(), bytes);
    });
    copies("in_of_locked", [&] {
      return backend.copy_in_later(&gpu.stream(), on_device.data(), locked.data(), bytes);
    });
    copies("out_to_locked",
           [&] { return backend.copy_out(&gpu.stream(), locked.data(), on_device.data(), bytes); });
    copies("within", [&] {
      return backend.copy(&gpu.stream(), on_device.data() + bytes, on_device.data(), bytes);
    });
  }
  return told;
}

}  // namespace ebb::facts
