#include "ebb/core/memory/memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "ebb/allocator/call_log.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/random/random.h"

namespace ebb {

namespace memory {

namespace {
CachingAllocator& allocator_of(const Device& device) noexcept {
  return device.runtime().allocator();
}
}  // namespace

Stats stats(const Device& device) { return allocator_of(device).stats(); }

void set_limit(const Device& device, std::optional<Limit> reserved) {
  allocator_of(device).set_limit(least_bytes({reserved}, device.runtime().capacity_bytes()));
}

void set_growth(const Device& device, Growth growth) {
  CachingAllocator& allocator = allocator_of(device);
  if (growth == Growth::on_demand) return allocator.preallocate(0);
  // Memory reserved by pools stays theirs.
  const Stats stats = allocator.stats();
  const std::size_t most = std::min(stats.limit, allocator.capacity_bytes());
  const std::size_t room = allocator.room_bytes();
  const std::size_t left = stats.limit == kNoLimit ? allocator.profile().left_free(room) : 0;
  allocator.preallocate(allocator.cache_bytes_within(most - left));
}

ReleaseReport release_cached(const Device& device) {
  if (CachingAllocator* staging = device.runtime().staging()) staging->release_cached();
  return allocator_of(device).release_cached();
}

std::size_t available(const Device& device) { return allocator_of(device).room_bytes(); }

Fragmentation fragmentation(const Device& device) { return allocator_of(device).fragmentation(); }

Watch on_pressure(const Device& device, WatchFunction call) {
  return allocator_of(device).watch({}, std::move(call));
}

Watch on_threshold(const Device& device, Limit threshold, WatchFunction call) {
  return allocator_of(device).watch(threshold.bytes_of(device.runtime().limit_bytes()),
                                    std::move(call));
}

void reset_peaks(const Device& device) { allocator_of(device).reset_peaks(); }

std::vector<Holder> holders(const Device& device, std::size_t most) {
  return allocator_of(device).holders(most);
}

std::vector<GrownHolder> difference(const std::vector<Holder>& before,
                                    const std::vector<Holder>& after) {
  // By text: copies of one line in a header have several addresses.
  using Text = std::string_view;
  const auto key = [](const Tag& tag) {
    return std::tuple(Text(tag.operator_name), Text(tag.file), tag.line, Text(tag.layer));
  };
  std::map<std::tuple<Text, Text, unsigned, Text>, Holder> known;
  for (const Holder& holder : before) known[key(holder.tag)] = holder;
  std::vector<GrownHolder> grown;
  for (const Holder& now : after) {
    const Holder& then = known[key(now.tag)];
    if (now.bytes > then.bytes)
      grown.push_back(
          {now.tag, now.bytes - then.bytes, static_cast<std::ptrdiff_t>(now.blocks - then.blocks)});
  }
  std::ranges::stable_sort(grown, std::greater(), &GrownHolder::bytes);
  return grown;
}

Prediction predict(const Device& device, const std::function<void(Device)>& program,
                   const PredictOptions& options) {
  constexpr std::size_t kHolders = 10;
  const ebb::detail::GeneratorScope unchanged;  // what follows draws the same numbers
  const Device twin = device.twin();
  Prediction prediction;
  const auto log = std::make_shared<CallLog>(device.runtime().profile());
  allocator_of(twin).set_call_log(log);
  {
    const ebb::detail::SimulationScope simulation(twin, options.values,
                                                  device.runtime().simulation());
    const struct WorldBefore {
      ~WorldBefore() { ebb::detail::predicted_world() = world; }
      ebb::detail::WorldState* const world = ebb::detail::predicted_world();
    } before;
    if (options.world) ebb::detail::predicted_world() = &options.world->state();
    const std::uint64_t counted = ebb::detail::counted().bytes;
    program(twin);
    prediction.sent_bytes = ebb::detail::counted().bytes - counted;
    prediction.reads = simulation.reads();
  }
  allocator_of(twin).set_call_log(nullptr);  // tensors that the program keeps are freed later

  const Stats after = stats(twin);
  prediction.reads_values = !prediction.reads.empty();
  const Request& request = log->peak_request();
  if (*request.tag.operator_name)
    prediction.peak_node = request.tag.operator_name + ebb::detail::at(request.tag);
  prediction.holders = log->peak_holders(kHolders);
  prediction.least_limit_bytes = log->least_limit_bytes();
  prediction.peak_bytes = after.allocated.peak;
  prediction.by_category = after.at_peak;
  prediction.reserved_peak_bytes = after.reserved.peak;
  prediction.held_bytes = after.allocated.current;
  prediction.capacity_bytes = twin.runtime().allocator().capacity_bytes();
  prediction.fits = twin.runtime().fits();
  return prediction;
}

}  // namespace memory

distributed::Sharding distributed::least_sharding(const Device& device, memory::Limit budget,
                                                  const std::function<void(Device)>& program,
                                                  const memory::PredictOptions& options,
                                                  CallSite site) {
  const detail::CallSiteScope at(site);
  if (!options.world) detail::refuse("least_sharding", "takes .world, a rank of a simulated world");
  const std::size_t most = budget.bytes_of(device.runtime().capacity_bytes());
  constexpr const char* kNames[] = {"none", "optimizer_state", "gradients", "parameters"};
  std::string found, thrown;
  for (int i = 0; i < 4; ++i) {
    const auto sharding = static_cast<Sharding>(i);
    memory::PredictOptions with = options;
    with.world = World::simulated(options.world->rank(), options.world->size(),
                                  {.ordered = options.world->ordered(), .sharding = sharding});
    try {
      const std::size_t takes = memory::predict(device, program, with).least_limit_bytes;
      if (takes <= most) return sharding;
      found += std::string("; ") + kNames[i] + " takes " + memory::exact_figure(takes) + " bytes";
    } catch (const Error& error) {  // of a session's own budget, say
      if (sharding == Sharding::parameters && found.empty()) throw;
      thrown += std::string("; ") + kNames[i] + " throws " + error.what();
    }
  }
  detail::refuse("least_sharding",
                 "no sharding keeps to " + memory::exact_figure(most) + " bytes" + found + thrown);
}

memory::Ledger& ledger_of(const Device& device) noexcept {
  return ledger_of(device.runtime().allocator());
}

}  // namespace ebb
