#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "ebb/core/data/batch.h"
#include "ebb/core/data/data_set.h"
#include "ebb/core/data/sample_reader.h"
#include "ebb/core/files/resumable.h"

namespace ebb {

// In order, or anew in each pass: of a seed, or with `true` of a key that each loader draws from
// the calling thread's generator when it is made. set_seed() repeats it, and position() carries it.
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
  bool drop_last = false;  // leave a last batch of fewer samples out
  Device device = Device::cpu();
  std::int64_t ahead = 1;  // batches made while the caller has one; 0: each when it is asked for
  // What is given out in place of a batch, made by operators on the loader's device when it is its
  // turn, without a history: augmentation, noise. The fields may change in number, shape and dtype.
  std::function<Batch(const Batch&)> transform = {};
};

// Batches of a data set on a device, for range-for; every pass is a new shuffle. Those that follow
// are made ahead by a thread of the pass's own, where there is something to gain: batches, their
// order and the memory they take are the same without. The data must not be written to meanwhile.
// Where there are two fields, for (auto [x, y] : loader); else batch[0], batch[1] and so on.
//
// The memory of a batch, and of each that is made ahead, is allocated when the loader is made and
// filled again and again. A batch that the caller still holds stays as it is: the loader takes new
// memory once it has none that is free, and makes nothing ahead until then. On a simulated device
// batches have shapes only. Passes may overlap; a pass goes on when its loader is gone. One thread
// at a time.
//
// A loader's position can be saved with a model, so that a program goes on in the middle of a pass:
//
//   session.save("run.safetensors", loader);     // or Parameters::save
//   session.restore("run.safetensors", loader);  // a loader of the same data and options
//   while (loader.pass() < 10)                   // how many there are in all
//     for (auto [x, y] : loader)                 // begins with the batch that was to come next
//
// That is the next batch of the pass that began last, also where `break` has left the loop:
// resumed, the first loop has the rest of that pass, while in the program that was not interrupted
// the next loop is a new pass. Where `break` ends an epoch, the two are the same if the resumed
// program calls loader.begin() once, which takes up the rest and leaves it. pass() counts what
// `break` has left when the next pass begins: there, `while (loader.pass() < 10)` has 11.
class DataLoader final : public Resumable {
 public:
  // Throws Error for a batch below 1, a negative `ahead` or an empty data set, OutOfMemory.
  explicit DataLoader(DataSet data, const DataLoaderOptions& options = {},
                      CallSite site = CallSite::here());
  // Of samples that are read when they are due. Throws also for a reader without fields or a
  // function, and ShapeError for fields of open shapes or of as many axes as a tensor can have.
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
  Iterator begin();  // starts a pass, or after resume() goes on with one
  End end() const noexcept { return {}; }
  // Batches in a pass.
  std::int64_t size() const noexcept;
  // Where it is, as position() says it: the number, from 0, of the pass that the next batch is of,
  // and how many batches of that pass have been given out. Behind the last batch of a pass that is
  // the next pass, and 0.
  std::int64_t pass() const noexcept;
  std::int64_t given() const noexcept;

  // What follows the batches that have been given out in the pass that began last.
  Position position() const override;
  // Passes a position in as many samples, in batches as large, of which the last is kept or left
  // out likewise, shuffled or not likewise. The seed of the shuffle is part of the position.
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

  // The batch at this position, made at the first call unless it was made ahead. What goes wrong
  // while a batch is made is thrown here, when it is the batch's turn; another call tries again.
  // Throws Error past the end of the pass.
  Batch operator*() const;
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& a, End) noexcept { return a.at_end(); }

 private:
  friend class DataLoader;
  struct Pass;
  explicit Iterator(const std::shared_ptr<State>& state);
  bool at_end() const noexcept;
  std::shared_ptr<Pass> pass_;  // shared by copies
  std::int64_t position_ = 0;   // in batches
  mutable Batch batch_;         // at this position, once it was asked for
};

}  // namespace ebb
