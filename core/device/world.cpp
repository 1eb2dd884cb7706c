#include "ebb/core/device/world.h"

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/device/world_state.h"

namespace ebb::distributed {

struct World::Held {
  explicit Held(detail::WorldState& of, bool is_lent = false) noexcept
      : state(of), is_lent(is_lent) {}
  ~Held() {
    if (is_lent) return;
    try {
      const std::string last = detail::last_error.data();
      if (std::uncaught_exceptions() > exceptions)
        state.fail("an exception has left the scope of its world" +
                   (last.empty() ? "" : "; ebb's last error there: " + last));
      else
        state.close();
    } catch (const std::exception& error) {
      detail::log_warning(error.what());
    }
  }

  detail::WorldState& state;
  const bool is_lent;  // by a prediction
  const int exceptions = std::uncaught_exceptions();
};

World::World(const WorldOptions& options, CallSite site) {
  const detail::CallSiteScope at(site);
  if (detail::WorldState* const predicted = detail::predicted_world()) {
    if ((options.ordered && !predicted->is_ordered()) ||
        (options.sharding != Sharding::none && options.sharding != predicted->sharding()))
      detail::refuse("World", "has other options than the world that is predicted for");
    held_ = std::make_shared<Held>(*predicted, true);
    return;
  }
  try {
    held_ = std::make_shared<Held>(detail::open_world(options));
  } catch (const Error& error) {  // its message has no user line yet
    throw Error(error.what() + detail::at(detail::entry()));
  }
}

World World::simulated(int rank, int size, const WorldOptions& options, CallSite site) {
  const detail::CallSiteScope at(site);
  if (size < 1 || rank < 0 || rank >= size)
    detail::refuse("World", "there is no rank " + std::to_string(rank) + " of " +
                                std::to_string(size) + ", counted from 0");
  return World(std::make_shared<Held>(
      detail::WorldState::keep(std::make_unique<detail::WorldState>(rank, size, options))));
}

int World::rank() const noexcept { return held_->state.rank(); }
int World::size() const noexcept { return held_->state.size(); }
bool World::ordered() const noexcept { return held_->state.is_ordered(); }
Sharding World::sharding() const noexcept { return held_->state.sharding(); }
std::uint64_t World::sent_bytes() const noexcept { return held_->state.sent_bytes(); }
Communicator& World::communicator() const noexcept { return held_->state; }
detail::WorldState& World::state() const noexcept { return held_->state; }

World World::split(int color, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (color < 0) detail::refuse("World", "a color is at least 0, not " + std::to_string(color));
  if (!held_->state.is_real())
    detail::refuse("World", "a simulated world cannot be split: its other ranks give no colors");
  return World(std::make_shared<Held>(held_->state.split(color)));
}

void World::close(CallSite site) const {
  const detail::CallSiteScope at(site);
  held_->state.close();
}

}  // namespace ebb::distributed
