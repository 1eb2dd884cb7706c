// Training steps of the bundled models, in both modes, of which a test lets something fail, and all
// that a step may change.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/graph/session.h"
#include "ebb/tests/properties/bundled_models.h"

namespace ebb::tests {

// The bits of what a step may change; no bits on a simulated device.
struct TrainingState {
  std::vector<std::string> names = {};  // parameters, slots, and which have a gradient
  std::vector<std::vector<std::byte>> bits = {};
  std::uint64_t random_key = 0, random_counter = 0;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// What is held: of the device, and in a graph of the session's pool.
struct HeldMemory {
  std::vector<std::size_t> bytes;  // requested, allocated, reserved, live blocks, by category
  std::size_t plans = 0;
  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;
};

// A program that trains, always the same one for equal arguments.
class FailingTraining {
 public:
  virtual ~FailingTraining() = default;
  // On a batch of `rows`. Gives the loss; nothing on a simulated device. When it throws, it has not
  // happened.
  virtual std::optional<float> step(std::int64_t rows) = 0;
  virtual TrainingState state() = 0;
  virtual HeldMemory held() = 0;
};
using MakeTraining = std::function<std::unique_ptr<FailingTraining>(const Device&)>;

MakeTraining eager_training(const BundledModel& model, Method method);
// `prepared`: through Session::prepare.
MakeTraining graph_training(const BundledModel& model, Method method, bool prepared = false);

}  // namespace ebb::tests
