#pragma once
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>

#include "ebb/core/data/data_set.h"

namespace ebb {

struct Batch {
  Tensor input;
  Tensor target;
};

struct DataLoaderOptions {
  std::int64_t batch = 32;
  std::optional<Seed> shuffle = {};  // none: in order
  bool drop_last = false;            // leave a last batch of fewer samples out
  Device device = Device::cpu();
};

// Batches of a data set on a device, for range-for; every pass is a new shuffle. The memory of a
// batch is allocated when the loader is made and filled again for each batch, unless the caller
// still holds the last one, which then stays as it is and the loader takes new memory. On a
// simulated device batches have shapes only. Passes may overlap; a pass goes on when its loader is
// gone. One thread at a time.
class DataLoader {
 public:
  // Throws Error for a batch below 1 or an empty data set, OutOfMemory.
  explicit DataLoader(DataSet data, const DataLoaderOptions& options = {},
                      CallSite site = CallSite::here());

  class Iterator;
  struct End {};
  Iterator begin();  // starts a pass
  End end() const noexcept { return {}; }
  // Batches in a pass.
  std::int64_t size() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

class DataLoader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  // The batch at this position, filled at the first call.
  Batch operator*() const;
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& a, End) noexcept { return a.at_end(); }

 private:
  friend class DataLoader;
  struct Pass;
  explicit Iterator(std::shared_ptr<State> state);
  bool at_end() const noexcept;
  std::shared_ptr<State> state_;
  std::shared_ptr<const Pass> pass_;  // the order of this pass's samples
  std::int64_t position_ = 0;         // in batches
  mutable Batch batch_;               // at this position, once it was asked for
};

}  // namespace ebb
