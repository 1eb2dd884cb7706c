// A model whose session the tests suspend, and the devices they do it on.
#pragma once
#include <vector>

#include "ebb/core/memory/memory.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/fault_source.h"
#include "ebb/tests/graph/models.h"

namespace ebb::tests {

inline constexpr std::int64_t kRows = 16;

// A device without reserved address ranges: after resume() memory has other addresses.
inline Device without_ranges(bool captures_programs = true) {
  struct Elsewhere : ForwardingSource {
    using ForwardingSource::ForwardingSource;
    void unreserve(void*, std::size_t) noexcept override {}
  };
  return make_second_device({.captures_programs = captures_programs, .grows = false},
                            std::make_unique<Elsewhere>(std::make_shared<memory::HostSource>()));
}

inline std::vector<Device> devices() {
  return {Device::cpu(), make_second_device(), make_second_device({.captures_programs = true}),
          without_ranges()};
}

// A training with dropout and Adam, so that its session holds values, moments, counts and random
// state, and the losses that it has if its session is never suspended.
struct Lent {
  static constexpr int kSteps = 8;
  explicit Lent(const Device& device = Device::cpu(), SessionOptions options = {})
      : options(options), data(kRows, device) {
    this->options.device = device;
    this->options.seed = Seed{11};
    Session straight = make();
    for (int i = 0; i < kSteps; ++i) wanted.push_back(run(straight));
    straight.close();
    session = make();
  }
  Session make() const { return model.open(options); }
  float run(Session& with) const { return with.run(model.train, feeds(model, data)).item<float>(); }
  // Checks the next loss, or those of the next steps.
  void check(float loss) { CHECK(loss == wanted[done++]); }
  void steps(int count) {
    for (int i = 0; i < count; ++i) check(run(session));
  }

  SessionOptions options;
  const ClassifierGraph model{0.5};
  const ClassifierData data;
  std::vector<float> wanted;
  std::size_t done = 0;
  Session session{model.graph};
};

inline bool is_empty(const Session& session) {
  const memory::Stats stats = session.stats();
  const memory::Breakdown held = session.memory();
  return stats.allocated.current == 0 && stats.reserved.current == 0 &&
         stats.requested.current == 0 && held.total_bytes == 0 && held.reserved_bytes == 0 &&
         held.arena_bytes == 0 && held.parameter_bytes == 0 && held.optimizer_state_bytes == 0;
}

}  // namespace ebb::tests
