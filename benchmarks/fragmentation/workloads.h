// Sequences of allocations and frees, the same in every run, without any computing.
#pragma once

#include <sys/mman.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ebb/core/memory/recording.h"
#include "ebb/core/ops/loss.h"
#include "ebb/eager/no_grad.h"
#include "ebb/models/forecaster.h"
#include "ebb/optim/adam.h"

namespace ebb::benchmarks {

/// Allocates from mmap: malloc is one of the allocators measured.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class Other>
  PageAllocator(const PageAllocator<Other>&) noexcept {}
  T* allocate(std::size_t count) {
    void* base = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(base);
  }
  void deallocate(T* base, std::size_t count) noexcept { ::munmap(base, count * sizeof(T)); }
  bool operator==(const PageAllocator&) const = default;
};
template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

struct Event {
  std::uint32_t block;  ///< numbered from 0 in the order of their allocation
  std::size_t bytes;    ///< 0: the block is freed
};

/// A sequence of events that begins and ends with nothing alive.
struct Workload {
  std::string name, what;
  PageVector<Event> events;
  std::uint32_t blocks = 0;

  std::uint32_t allocate(std::size_t bytes) {
    events.push_back({blocks, bytes});
    return blocks++;
  }
  void free(std::uint32_t block) { events.push_back({block, 0}); }
  void free(PageVector<std::uint32_t>& several) {
    for (const std::uint32_t block : several) free(block);
    several.clear();
  }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  /// A size drawn uniformly in its logarithm, as sizes of tensors spread: as many between 1 and 2
  /// KiB as between 1 and 2 MiB.
  std::size_t over_magnitudes(std::size_t least, std::size_t most) {
    const double magnitude = static_cast<double>(engine_() >> 11) * 0x1p-53;
    const double ratio = static_cast<double>(most) / static_cast<double>(least);
    return static_cast<std::size_t>(static_cast<double>(least) * std::pow(ratio, magnitude));
  }

 private:
  std::mt19937_64 engine_;
};

inline constexpr std::size_t kKiB = 1 << 10, kMiB = 1 << 20;

/// Blocks of random sizes that live for random times. The bytes alive swing between half of
/// `most_alive` and all of it, which leaves gaps of all kinds.
template <class Size>
Workload random_lives(std::string name, std::string what, std::size_t most_alive,
                      std::size_t blocks, Size&& size) {
  Workload workload{std::move(name), std::move(what), {}};
  Random random(1);
  struct Live {
    std::uint32_t block;
    std::size_t bytes;
  };
  PageVector<Live> live;
  std::size_t alive = 0;
  bool is_growing = true;
  while (workload.blocks < blocks) {
    const std::size_t bytes = size(random);
    if (alive + bytes > most_alive) is_growing = false;
    if (alive < most_alive / 2) is_growing = true;
    if (alive + bytes <= most_alive && random.below(4) < (is_growing ? 3 : 1)) {
      live.push_back({workload.allocate(bytes), bytes});
      alive += bytes;
    } else if (!live.empty()) {
      std::swap(live[random.below(live.size())], live.back());
      workload.free(live.back().block);
      alive -= live.back().bytes;
      live.pop_back();
    }
  }
  for (const Live& each : live) workload.free(each.block);
  return workload;
}

/// An eager training of a Forecaster by Adam, on addresses without memory.
struct Training {
  const Device device = Device::simulated("cpu", std::size_t{1} << 40);
  const memory::Recording recording{device, {.max_events = 100'000}};
  const Parameters parameters{device, Seed{1}};
  const models::Forecaster model{parameters, 64, {.hidden = 128, .layers = 2, .dropout = 0.2}};
  const optim::Adam adam;

  Tensor inputs(std::int64_t rows, std::size_t length) const {
    return Tensor::zeros({rows, static_cast<std::int64_t>(length), 64}, DType::f32, device);
  }
  /// Returns the loss.
  Tensor step(std::int64_t rows, std::size_t length) const {
    const Tensor x = inputs(rows, length), y = Tensor::zeros({rows, 1}, DType::f32, device);
    return adam.minimize(mse(model(x, Phase::training), y), parameters);
  }
};

/// The memory events of train(Training), blocks rounded as they were allocated.
template <class Train>
Workload recorded(std::string name, std::string what, const Train& train) {
  Workload workload{std::move(name), std::move(what), {}};
  const Training training;
  train(training);
  std::map<const void*, std::uint32_t> live;
  for (const memory::RecordedEvent& event : training.recording.events()) {
    if (event.kind == memory::EventKind::allocate) {
      const bool is_new = live.try_emplace(event.address, workload.blocks).second;
      if (is_new)
        workload.allocate(event.bytes);
      else  // another category of the same block
        workload.events.back().bytes += event.bytes;
    } else if (event.kind == memory::EventKind::free) {
      if (const auto node = live.extract(event.address)) workload.free(node.mapped());
    }
  }
  for (const auto& [address, block] : live) workload.free(block);
  return workload;
}

inline Workload growing_lengths() {
  return recorded("growing lengths", "LSTM steps over 8, 16, ... 208 time steps",
                  [](const Training& training) {
                    for (std::size_t length = 8; length <= 208; length += 8)
                      training.step(32, length);
                  });
}

inline Workload random_lengths() {
  return recorded("random lengths", "100 LSTM steps over 8 to 208 time steps",
                  [](const Training& training) {
                    Random random(2);
                    for (int i = 0; i < 100; ++i) training.step(32, random.between(8, 208));
                  });
}

/// Ten epochs over 16, 32, ... 192 time steps, whose last batch is smaller. Keeps every loss. After
/// an epoch come four evaluations, and at times a copy of the parameters that replaces the one
/// before.
inline Workload whole_training() {
  return recorded("training", "300 LSTM steps, with losses kept, evaluations and copies",
                  [](const Training& training) {
                    Random random(1);
                    const auto length = [&] { return 16 * random.between(1, 12); };
                    Tensors losses, copies;
                    for (int step = 1; step <= 300; ++step) {
                      losses.push_back(training.step(step % 30 == 0 ? 20 : 32, length()));
                      if (step % 30 != 0) continue;
                      const NoGrad no_grad;
                      for (int i = 0; i < 4; ++i) training.model(training.inputs(32, length()));
                      if (random.below(2) == 0) continue;
                      copies.clear();
                      for (const Tensor& parameter : training.parameters.tensors())
                        copies.push_back(parameter.clone());
                    }
                  });
}

/// Small blocks of which one in fifty stays and keeps the free ones around it apart; then large
/// blocks.
inline Workload pinned() {
  Workload workload{"pinned", "small blocks of which 1 in 50 stays, then 4 to 24 MiB", {}};
  Random random(4);
  PageVector<std::uint32_t> small, pins;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 0; bytes < 96 * kMiB;) {
      const std::size_t more = random.over_magnitudes(512, 256 * kKiB);
      const std::uint32_t block = workload.allocate(more);
      (random.below(50) == 0 ? pins : small).push_back(block);
      bytes += more;
    }
    workload.free(small);
    PageVector<std::uint32_t> large;
    for (std::size_t bytes = 0; bytes < 96 * kMiB;) {
      const std::size_t more = random.between(4 * kMiB, 24 * kMiB);
      large.push_back(workload.allocate(more));
      bytes += more;
    }
    workload.free(large);
  }
  workload.free(pins);
  return workload;
}

inline std::vector<Workload> all_workloads() {
  std::vector<Workload> all;
  all.push_back(random_lives("small", "0.5 KiB to 1 MiB, random lives", 64 * kMiB, 20'000,
                             [](Random& random) { return random.over_magnitudes(512, kMiB); }));
  all.push_back(random_lives("small to 8 MiB", "0.5 KiB to 8 MiB, random lives", 256 * kMiB, 10'000,
                             [](Random& random) { return random.over_magnitudes(512, 8 * kMiB); }));
  all.push_back(random_lives("0.5 to 24 MiB", "0.5 to 24 MiB, random lives", 512 * kMiB, 1'000,
                             [](Random& random) { return random.between(kMiB / 2, 24 * kMiB); }));
  all.push_back(growing_lengths());
  all.push_back(random_lengths());
  all.push_back(pinned());
  all.push_back(whole_training());
  return all;
}

}  // namespace ebb::benchmarks
