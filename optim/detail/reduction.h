// The ranks' gradients of a step, summed over a world.
#pragma once
#include <exception>
#include <optional>
#include <vector>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/world.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::optim {

using Entries = std::vector<const Parameters::Entry*>;

// Sums rows gradient over the ranks, for each of some parameters, where rows (i64 scalar) are those
// that a rank's loss is the mean of. Gradients are collected in buckets, last parameters first; as
// soon as one is complete its sum begins, beside the rest of the backward pass. In an ordered world
// the sum is made at once, in the order of the ranks; so it is where the world shards gradients,
// each parameter by itself.
class Reduction : NoCopy {
 public:
  // `starts`: what each sum begins with, where sums are made in order, and has the dtype of; empty:
  // 0.
  Reduction(const distributed::World& world, const Entries& parameters, const Tensor& rows,
            Tensors starts = {});
  // After an exception waits for sums under way, as their memory goes.
  ~Reduction();

  // Whether sums are made in the order of the ranks.
  static bool is_in_order(const distributed::World& world) noexcept {
    return world.ordered() || world.sharding() >= distributed::Sharding::gradients;
  }
  // Takes the i-th gradient, of the parameter's shape; each comes once.
  void arrive(std::size_t i, const Tensor& gradient);
  // The sums, when all gradients have arrived: views of the buckets, in the parameters' order and
  // shapes, of state_dtype_of() each unless a start says otherwise. Where the world shards
  // gradients, this rank's shares.
  Tensors sums();

 private:
  struct Bucket {
    std::int64_t elements = 0;
    DType dtype = DType::f32, sum_dtype = DType::f32;  // of the parameters, of their sums
    std::size_t left = 0;                              // gradients that have not arrived
    const char* name = "";
    Tensor total = {}, parts = {};  // parts: of sums in order
  };
  struct Place {
    std::size_t bucket;
    std::int64_t begin;
  };
  Tensor view(const Tensor& bucket, std::size_t i) const;
  Tensor sum(std::size_t i) const;
  void open(std::size_t bucket);

  const distributed::World world_;
  const bool is_in_order_ = is_in_order(world_);
  const bool makes_shares_ = world_.sharding() >= distributed::Sharding::gradients;
  const Entries parameters_;
  const Tensor rows_;
  const Tensors starts_;
  std::vector<Place> places_;
  std::vector<Bucket> buckets_;
  bool is_over_ = false;
};

// Rows of all ranks, and the mean of their losses over these.
class WorldMean : NoCopy {
 public:
  // Begins to sum. `loss` has one element, or is not defined.
  WorldMean(const distributed::World& world, const Tensor& rows, const Tensor& loss);
  ~WorldMean();
  // Waits. After it: the count, an i64 scalar; the mean, like the loss, and NaN where no rank has
  // rows.
  void finish();
  Tensor count, mean;

 private:
  const distributed::World world_;
  const Tensor loss_;
  Tensor sums_;
};

// Calls work(); where it throws, the other ranks are told why this one leaves the step. Without a
// world just calls it.
template <class Work>
decltype(auto) with_ranks(const std::optional<distributed::World>& world, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (world) world->state().fail(error.what());
    throw;
  }
}

}  // namespace ebb::optim
