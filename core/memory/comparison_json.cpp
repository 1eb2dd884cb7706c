#include <nlohmann/json.hpp>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/comparison.h"

namespace ebb::memory {

namespace {
using Json = nlohmann::ordered_json;

Json to_json(const Footprint& footprint) {
  Json moments = Json::array(), by_category = Json::object();
  for (const Moment& moment : footprint.moments)
    moments.push_back({{"name", moment.name}, {"bytes", moment.bytes}});
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    by_category[ebb::memory::name(static_cast<Category>(i))] = footprint.by_category[i];
  return {{"steps", footprint.steps},
          {"peak_bytes", footprint.peak_bytes},
          {"by_category", by_category},
          {"step_peak_bytes", footprint.step_peak_bytes},
          {"held_between_steps_bytes", footprint.held_between_steps_bytes},
          {"end_bytes", footprint.end_bytes},
          {"reserved_end_bytes", footprint.reserved_end_bytes},
          {"reserved_released_bytes", footprint.reserved_released_bytes},
          {"moments", moments}};
}
}  // namespace

std::string Comparison::json() const {
  Json programs = Json::array();
  for (const Measurement& result : results_) {
    Json measured;  // null
    if (!device_.is_simulated()) measured = to_json(result.measured);
    programs.push_back({{"name", result.name},
                        {"seconds", result.seconds},
                        {"fits", result.fits},
                        {"losses", result.losses},
                        {"predicted", to_json(result.predicted)},
                        {"measured", measured}});
  }
  const Json document = {{"device", device_.name()},
                         {"capacity_bytes", device_.runtime().capacity_bytes()},
                         {"simulated", device_.is_simulated()},
                         {"programs", programs}};
  return document.dump(2);
}

}  // namespace ebb::memory
