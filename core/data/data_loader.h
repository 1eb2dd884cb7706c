#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "ebb/core/data/batch.h"
#include "ebb/core/data/data_set.h"
#include "ebb/core/data/sample_reader.h"
#include "ebb/core/device/world.h"
#include "ebb/core/files/resumable.h"

namespace ebb {

// The order of samples: as stored, or shuffled anew in each pass. A shuffle has a seed or, with
// `true`, a key that each loader draws from the calling thread's generator when it is made.
// set_seed() repeats that key, and position() carries it.
class Shuffle {
 public:
  Shuffle() = default;
  Shuffle(std::nullopt_t) {}                                 // NOLINT: implicit is the point
  Shuffle(Seed seed) : seed_(seed) {}                        // NOLINT: implicit is the point
  Shuffle(const std::optional<Seed>& seed) : seed_(seed) {}  // NOLINT: likewise
  Shuffle(std::same_as<bool> auto draws) : draws_(draws) {}  // NOLINT: likewise

  const std::optional<Seed>& seed() const noexcept { return seed_; }
  bool draws() const noexcept { return draws_; }

 private:
  std::optional<Seed> seed_;
  bool draws_ = false;
};

struct DataLoaderOptions {
  std::int64_t batch = 32;
  Shuffle shuffle = {};    // in order
  bool drop_last = false;  // leave out a last batch of fewer samples
  Device device = Device::cpu();
  std::int64_t ahead = 1;  // batches made while the caller has one; 0: each batch is made when due
  // Turns each batch into the batch that is given out: augmentation, noise. Its operators run on
  // the loader's device when the batch is due, without a history. The fields may change in number,
  // shape and dtype.
  std::function<Batch(const Batch&)> transform = {};
  // Deals each batch out to the ranks of a world: `batch` counts the samples of all of them, whose
  // order is rank 0's. Parts differ by one sample at most, and may be empty at a ragged end.
  std::optional<distributed::World> shard = {};
};

// Batches of a data set on a device, for range-for; every pass is a new shuffle. With two fields
// write for (auto [x, y] : loader), else batch[0], batch[1] and so on. Where it pays, a thread of
// the pass makes the following batches ahead. Batches, their order and the memory they take are the
// same without it. The data must not be written to meanwhile.
//
// The memory of a batch, and of each batch made ahead, is allocated with the loader and filled
// again and again. A batch that the caller still holds stays as it is: once no memory is free the
// loader takes more, and makes nothing ahead until some is. On a simulated device batches have
// shapes only. Passes may overlap; a pass goes on when its loader is gone. One thread at a time.
//
// A loader's position can be saved with a model, so that a program goes on in the middle of a pass:
//
//   session.save("run.safetensors", loader);     // or Parameters::save
//   session.restore("run.safetensors", loader);  // a loader of the same data and options
//   while (loader.pass() < 10)                   // the number of passes in all
//     for (auto [x, y] : loader)                 // begins with the next batch
//
// The next batch is the next of the pass that began last, even if `break` has left its loop. After
// a restore the first loop takes the rest of that pass, but in the uninterrupted program the next
// loop begins a new pass. If `break` ends your epochs, call loader.begin() once after a restore: it
// takes up the rest and leaves it, and both programs agree. A pass left by `break` is counted by
// pass() only when the next begins: `while (loader.pass() < 10)` then makes 11.
class DataLoader final : public Resumable {
 public:
  // Throws Error for a batch below 1, a negative `ahead` or an empty data set, OutOfMemory.
  explicit DataLoader(DataSet data, const DataLoaderOptions& options = {},
                      CallSite site = CallSite::here());
  // A loader of samples that are read when they are due. Throws also for a reader without fields or
  // a function, and ShapeError for fields of open shapes or of as many axes as a tensor can have.
  explicit DataLoader(SampleReader reader, const DataLoaderOptions& options = {},
                      CallSite site = CallSite::here());
  DataLoader(DataSet data, std::integral auto batch, CallSite site = CallSite::here())
      : DataLoader(std::move(data), DataLoaderOptions{.batch = static_cast<std::int64_t>(batch)},
                   site) {}
  DataLoader(SampleReader reader, std::integral auto batch, CallSite site = CallSite::here())
      : DataLoader(std::move(reader), DataLoaderOptions{.batch = static_cast<std::int64_t>(batch)},
                   site) {}

  class Iterator;
  struct End {};
  Iterator begin();  // starts a pass; after resume() continues one
  End end() const noexcept { return {}; }
  // Number of batches in a pass.
  std::int64_t size() const noexcept;
  // The position, as in position(): the number of the next batch's pass, from 0, and the count of
  // its batches given out so far. Behind the last batch of a pass they are the next pass and 0.
  std::int64_t pass() const noexcept;
  std::int64_t given() const noexcept;

  // Position behind the batches given out in the pass that began last.
  Position position() const override;
  // Throws unless this loader can take up `position`: the same number of samples, batch size,
  // drop_last, and shuffled or not. The seed of the shuffle is part of the position.
  void check(const Position& position, const std::string& file) const override;
  void resume(const Position& position) noexcept override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

class DataLoader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  // The batch at this position, made at the first call unless it was made ahead. An error in making
  // a batch is thrown here, when the batch is due; another call tries again. Throws Error past the
  // end of the pass.
  Batch operator*() const;
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& a, End) noexcept { return a.at_end(); }

 private:
  friend class DataLoader;
  struct Pass;
  explicit Iterator(const std::shared_ptr<State>& state);
  bool at_end() const noexcept;
  std::shared_ptr<Pass> pass_;                  // shared by copies
  std::int64_t position_ = 0;                   // in batches
  mutable Batch batch_;                         // at this position, once it was asked for
  mutable std::shared_ptr<const void> in_use_;  // its rows, as the world of .shard knows them
};

}  // namespace ebb
