// A model whose session the tests suspend, and the devices they do it on.
#pragma once
#include <vector>

#include "ebb/core/memory/memory.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/graph/models.h"

namespace ebb::tests {

inline constexpr std::int64_t kRows = 16;

// Has dropout and Adam, so that its session holds values, moments, counts and random state.
struct SuspendedModel : ClassifierGraph {
  SuspendedModel() : ClassifierGraph(0.5) {}
  Feeds feeds(const ClassifierData& data) const { return {{x, data.x}, {y, data.y}}; }
};

// A device without reserved address ranges: after resume() memory has other addresses.
inline Device without_ranges() {
  return make_second_device({.captures_programs = true, .grows = false});
}

inline std::vector<Device> devices() {
  return {Device::cpu(), make_second_device(), make_second_device({.captures_programs = true}),
          without_ranges()};
}

inline Session make(const SuspendedModel& model, const Device& device,
                    SessionOptions options = {}) {
  options.device = device;
  options.seed = Seed{11};
  Session session(model.graph, options);
  session.initialize(model.parameters);
  return session;
}

inline std::vector<float> losses(const SuspendedModel& model, const Device& device, int steps) {
  Session session = make(model, device);
  const ClassifierData data(kRows, device);
  std::vector<float> values;
  for (int i = 0; i < steps; ++i)
    values.push_back(session.run(model.train, model.feeds(data)).item<float>());
  return values;
}

inline bool is_empty(const Session& session) {
  const memory::Stats stats = session.stats();
  const memory::Breakdown held = session.memory();
  return stats.allocated.current == 0 && stats.reserved.current == 0 &&
         stats.requested.current == 0 && held.total_bytes == 0 && held.reserved_bytes == 0 &&
         held.arena_bytes == 0 && held.parameter_bytes == 0 && held.optimizer_state_bytes == 0;
}

}  // namespace ebb::tests
