#pragma once
#include <memory>
#include <vector>

#include "ebb/core/memory/predict.h"

namespace ebb::detail {

// A prediction's simulation on a device, for the scope's life; none on a real device.
class SimulationScope {
 public:
  SimulationScope(const Device& twin, const memory::PredictOptions& options,
                  std::shared_ptr<const Simulation> outer = {});
  ~SimulationScope();
  SimulationScope(const SimulationScope&) = delete;
  SimulationScope& operator=(const SimulationScope&) = delete;

  std::vector<memory::ReadLine> reads() const;

 private:
  const Device twin_;
  const std::shared_ptr<Simulation> simulation_;
  std::shared_ptr<Simulation> before_;
};

}  // namespace ebb::detail
