#pragma once
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "ebb/core/kernels/philox.h"

namespace ebb::detail {

// Purpose of a key. Every seed is turned into a key of its purpose before anything is drawn, so
// that equal seeds share no numbers between purposes. (Initial values hash seed and name into keys
// of their own: core/parameters/initializer.cpp.)
enum class Purpose : std::uint64_t { thread, eager, session, shuffle, split, rank };

// A key from a block of random words.
constexpr std::uint64_t first_words(const Philox::Words& words) noexcept {
  return std::uint64_t{words[1]} << 32 | words[0];
}

// Derives an independent key for each (seed, purpose, index): words of a Philox block that nobody
// else reads, since nothing is drawn under a bare seed.
constexpr std::uint64_t derive_key(std::uint64_t seed, Purpose purpose,
                                   std::uint64_t index = 0) noexcept {
  return first_words(Philox::draw(seed, static_cast<std::uint64_t>(purpose), index));
}

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
