// Run alone and by mpirun: every rank runs all tests of this folder, in the same order.
#pragma once
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {

using distributed::Sharding;
using distributed::World;

inline constexpr InMode::Kind kModes[] = {InMode::eager, InMode::graph, InMode::compiled};

// 21 samples of 5 features and a target.
inline DataSet some_data() {
  std::vector<float> x, y;
  for (int i = 0; i < 21; ++i) {
    for (int k = 0; k < 5; ++k) x.push_back(std::sin(0.37f * static_cast<float>(i * 5 + k)));
    y.push_back(std::cos(0.71f * static_cast<float>(i)));
  }
  return {Tensor::from(x, {21, 5}), Tensor::from(y, {21, 1})};
}

// The message of the error that `work` throws on this rank.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A folder that all ranks see, of this job alone, gone at the end.
struct SharedFolder {
  explicit SharedFolder(const World& all) : world(all) {
    const Tensor process = Tensor::from(static_cast<std::int64_t>(::getpid()));
    path = "ranks" + std::to_string(distributed::broadcast(process, world).item<std::int64_t>());
    if (world.rank() == 0) std::filesystem::create_directories(path);
    wait();
  }
  ~SharedFolder() {
    wait();
    if (world.rank() == 0) std::filesystem::remove_all(path);
  }
  void wait() const { distributed::mean(0, 1, world); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }

  const World world;
  std::string path;
};

inline constexpr std::int64_t kBatch = 10;  // 21 samples end in a batch of 1: most ranks have none

inline optim::Adam adam_over(const std::optional<World>& world, optim::Clip clip = {}) {
  return optim::Adam({.learning_rate = 0.05, .weight_decay = 0.01, .clip = clip, .world = world});
}

}  // namespace ebb::tests
