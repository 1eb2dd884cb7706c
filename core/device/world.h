#pragma once
#include <cstdint>
#include <memory>

#include "ebb/core/base/call_site.h"

namespace ebb {

class Communicator;

namespace detail {
class WorldState;
}

namespace distributed {

// Of what each rank keeps 1 / size of the elements: the optimizer's state, gradients too,
// parameters too (stages 1 to 3 of ZeRO; Rajbhandari et al., SC 2020).
enum class Sharding : std::uint8_t { none, optimizer_state, gradients, parameters };

struct WorldOptions {
  // Sums are made in the order of the ranks, by ebb: training is then equal, bit for bit, to one
  // process that accumulates the ranks' micro-batches in this order. Takes a buffer more. Otherwise
  // the order is one that sends little, and results agree within rounding.
  bool ordered = false;
  // Optimizers and their Parameters both have the world then. Losses are those of a world without
  // it, bit for bit if ordered; `gradients` sends less than `optimizer_state`.
  Sharding sharding = Sharding::none;
};

// The processes of a job that train together, one rank each: started by mpirun, srun or what the
// cluster has, each with the same program. Alone, without a launcher, a world has one rank and
// needs no MPI.
//
//   distributed::World world;
//   DataLoader loader(data, {.batch = 256, .shard = world});      // 256 rows a step, of all ranks
//   optim::Adam adam({.learning_rate = 1e-3, .world = world});
//
// All ranks make the same worlds, and the same calls of a world in the same order. Each call first
// compares what the ranks are about to do; where they differ (another model, a shape, a number of
// steps, a rank that has failed), every rank throws an Error that names rank and tensor, and the
// world is over. A rank that leaves a world through an exception tells the others.
//
// A handle: copies are one world. It may be used by one thread at a time; CPU tensors are sent by a
// thread of its own.
class World {
 public:
  // Throws Error that says what is missing, and where the launcher knows of other processes that
  // MPI does not.
  explicit World(const WorldOptions& options = {}, CallSite site = CallSite::here());
  // A rank of a world that is not there, for predictions: what its collectives on simulated devices
  // would send is counted. Throws Error for a rank out of range.
  static World simulated(int rank, int size, const WorldOptions& options = {},
                         CallSite site = CallSite::here());
  // What is moved stays a handle.
  World(const World&) = default;
  World& operator=(const World&) = default;

  int rank() const noexcept;  // from 0
  int size() const noexcept;
  bool ordered() const noexcept;
  Sharding sharding() const noexcept;
  // The ranks that give the same color, from 0, as a world of their own, in their order here.
  // Throws Error for a color below 0, and for a simulated world of several ranks, whose colors
  // nobody knows.
  World split(int color, CallSite site = CallSite::here()) const;
  // Bytes that this rank has sent by collectives of this world, which what it passes on for others
  // counts among: an all_reduce of n bytes is 2 (size - 1) / size n.
  std::uint64_t sent_bytes() const noexcept;

  // Waits until all ranks close the world. After it collectives of several ranks throw Error.
  // Called where the last handle goes, too, which logs what it would throw, and where the process
  // ends. Throws Error where another rank has steps left.
  void close(CallSite site = CallSite::here()) const;

  friend bool operator==(const World& a, const World& b) noexcept { return a.held_ == b.held_; }

  Communicator& communicator() const noexcept;
  detail::WorldState& state() const noexcept;

 private:
  struct Held;
  explicit World(std::shared_ptr<Held> held) noexcept : held_(std::move(held)) {}
  std::shared_ptr<Held> held_;  // closes the world at its end
};

}  // namespace distributed
}  // namespace ebb
