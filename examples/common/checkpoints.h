#pragma once
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/examples/common/options.h"

namespace examples {

// Saves a run after each epoch, and goes on with one that was saved: in either mode, whichever it
// was saved in. The device is the one that it trains on: the twin has no values to save.
class Checkpoints {
 public:
  Checkpoints(const Options& options, const ebb::Device& here)
      : options_(options), has_values_(!here.is_simulated()) {}

  // Returns how many epochs have been trained. Throws FileError, Error where none is left.
  template <class Load>
  std::int64_t resume(const ebb::DataLoader& batches, const Load& load) const {
    if (options_.resume.empty()) return 0;
    load(options_.resume);
    const std::int64_t epochs = batches.pass();
    if (epochs >= options_.epochs)
      throw ebb::Error(options_.resume + " has " + std::to_string(epochs) +
                       " epochs already; --epochs says how many there are in all");
    return epochs;
  }
  template <class Save>
  void save(const Save& save) const {
    if (has_values_ && !options_.save.empty()) save(options_.save);
  }

 private:
  const Options& options_;
  const bool has_values_;
};

}  // namespace examples
