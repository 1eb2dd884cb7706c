// Training steps of the bundled models in both modes, in which a test lets something fail, and
// everything that a step may change.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/tests/in_mode.h"
#include "ebb/tests/properties/bundled_models.h"

namespace ebb::tests {

// Bits of everything that a step may change; none on a simulated device.
struct TrainingState {
  std::vector<std::string> names = {};  // parameters, slots, and which have a gradient
  std::vector<std::vector<std::byte>> bits = {};
  std::uint64_t random_key = 0, random_counter = 0;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// Bytes in use on the device, and in a graph those in the session's pool.
struct HeldMemory {
  std::vector<std::size_t> bytes;  // requested, allocated, reserved, live blocks, by category
  std::size_t plans = 0;
  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;
};

enum class Way { eager, graph, prepared };  // prepared: a graph's steps go through Session::prepare

// A program that trains; equal arguments make equal programs.
class FailingTraining {
 public:
  FailingTraining(const BundledModel& model, Method method, Way way, const Device& device);
  // Makes a step on a batch of `rows` samples. Returns the loss, nothing on a simulated device. A
  // step that throws has changed nothing.
  std::optional<float> step(std::int64_t rows);
  // Leaves out a session's random state, which shows in the next loss.
  TrainingState state();
  HeldMemory held();

 private:
  const BundledModel model_;
  const Way way_;
  const Device device_;
  InMode mode_;
  const Loss loss_;
  const InMode::Function step_;
};
using MakeTraining = std::function<std::unique_ptr<FailingTraining>(const Device&)>;

inline MakeTraining training(const BundledModel& model, Method method, Way way) {
  return [=](const Device& device) {
    return std::make_unique<FailingTraining>(model, method, way, device);
  };
}

}  // namespace ebb::tests
