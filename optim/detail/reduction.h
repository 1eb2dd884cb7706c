// The ranks' gradients of a step, summed over a world.
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/device/world.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::optim {

using Entries = std::vector<const Parameters::Entry*>;

// Whether sums of gradients are made in the order of the ranks.
inline bool is_in_order(const distributed::World& world) noexcept {
  return world.ordered() || world.sharding() >= distributed::Sharding::gradients;
}

struct Summed {
  Tensors sums;  // in the parameters' order, of state_dtype_of() each unless a start says otherwise
  Tensor count;  // rows of all ranks, an i64 scalar
  Tensor loss;   // the mean over these, like the loss; NaN where no rank has rows
};

// Sums rows gradient over the ranks, for each of some parameters, where rows (i64 scalar) are those
// that a rank's loss (one element, or not defined) is the mean of. differentiate(take) gives the
// gradients, each once and of its parameter's shape. They are collected in buckets, last parameters
// first; as soon as one is complete its sum begins, beside the rest of the backward pass. In an
// ordered world the sum is made at once, in the order of the ranks; so it is where the world shards
// gradients, each parameter by itself, and the sums are this rank's shares.
//
// `starts`: what each sum begins with, where sums are made in order, and has the dtype of; empty:
// 0.
Summed sum_over(const distributed::World& world, const Entries& parameters, const Tensor& rows,
                const Tensor& loss, Tensors starts,
                const std::function<void(const ebb::detail::TakeGradient& take)>& differentiate);

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
