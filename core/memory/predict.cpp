#include "ebb/core/memory/predict.h"

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/random/random.h"

namespace ebb::memory {

Prediction predict(const Device& device, const std::function<void(Device)>& program) {
  const ebb::detail::GeneratorScope unchanged;  // what follows draws the same numbers
  const Device twin = device.twin();
  program(twin);

  const Stats after = stats(twin);
  Prediction prediction;
  prediction.peak_bytes = after.allocated.peak;
  prediction.by_category = after.at_peak;
  prediction.reserved_peak_bytes = after.reserved.peak;
  prediction.held_bytes = after.allocated.current;
  prediction.capacity_bytes = twin.runtime().allocator().capacity_bytes();
  prediction.fits = twin.runtime().fits();
  return prediction;
}

}  // namespace ebb::memory
