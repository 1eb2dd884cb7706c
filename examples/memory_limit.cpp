// How do I bound what a program takes, or one session of it?
//
// Set a limit in bytes or as a fraction, on the device or on a session, at any time. Nothing is
// reserved ahead unless you ask for it.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;
using namespace ebb::literals;

void show(const char* moment, const memory::Stats& now) {
  std::printf("%-46s %10s %10s\n", moment, memory::figure(now.allocated.current).c_str(),
              memory::figure(now.reserved.current).c_str());
}

// Calls something that takes memory, and prints how that ended.
template <class Action>
void try_to(const char* what, const Action& action) {
  try {
    action();
    std::printf("  %s: done\n", what);
  } catch (const OutOfMemory& error) {
    std::printf("  %s: refused, the limit is %s\n", what,
                memory::figure(error.limit_bytes()).c_str());
  }
}

void run(const Device& device) {
  const auto take = [&](std::int64_t mib) {
    return Tensor::zeros({mib, 1 << 20}, DType::u8, device);
  };
  std::printf("%-46s %10s %10s\n", "", "allocated", "reserved");
  memory::set_limit(device, 64_MiB);
  {
    const Tensor held = take(16);
    take(32);  // and dropped at once
    show("at most 64 MiB; 16 are held, 32 were", memory::stats(device));
    try_to("48 MiB more", [&] { take(48); });
    try_to("49 MiB more", [&] { take(49); });
    memory::set_limit(device, 8_MiB);
    show("lowered to 8 MiB: what is held stays", memory::stats(device));
    try_to("1 MiB more", [&] { take(1); });
  }
  memory::release_cached(device);
  memory::set_limit(device, 64_MiB);
  memory::set_growth(device, memory::Growth::preallocate);
  show("64 MiB, reserved ahead", memory::stats(device));
  memory::set_growth(device, memory::Growth::on_demand);
  memory::set_limit(device, std::nullopt);
  memory::release_cached(device);

  const Device large = Device::simulated("cpu", 24_GiB);  // a fraction is of the capacity
  memory::set_limit(large, memory::Limit::fraction(0.25));
  std::printf("a quarter of a device of 24 GiB: %s\n\n",
              memory::figure(memory::stats(large).limit).c_str());
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 1024});
  const Parameters params(graph, Seed{7});
  const Tensor y = models::Mlp(params, {1024, 1024, 1024})(x);
  const std::size_t needed = graph.plan({y}, {{x, {256, 1024}}}, device).reserved_bytes;
  Session session(graph, {.device = device, .memory_limit = needed});
  session.initialize(params);
  const auto run = [&](std::int64_t rows) {
    session.run(y, {{x, Tensor::zeros({rows, 1024}, DType::f32, device)}});
  };
  try_to("256 rows, in a session limited to their plan", [&] { run(256); });
  try_to("257 rows", [&] { run(257); });
  session.set_memory_limit(needed - 1);
  show("lowered by a byte: its arena goes back", session.stats());
  try_to("256 rows", [&] { run(256); });
  session.set_memory_limit(memory::Limit::fraction(0.5));
  try_to("2560 rows, limited to half of the device", [&] { run(2560); });
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I bound what a program takes?", run);
}
