#pragma once
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "ebb/core/random/random_key.h"

namespace ebb::detail {

// Returns 0 to count - 1 in a random order that depends on the arguments alone (Fisher and Yates;
// the modulus of 64 bits favours no index by more than count / 2^64).
inline std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed,
                                             Purpose purpose, std::uint64_t draw = 0) {
  const std::uint64_t key = derive_key(seed, purpose);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {
    const Philox::Words words = Philox::draw(key, draw, left);
    const std::uint64_t random = std::uint64_t{words[0]} << 32 | words[1];
    std::swap(order[left - 1], order[random % left]);
  }
  return order;
}

}  // namespace ebb::detail
