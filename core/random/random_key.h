#pragma once
#include <cstdint>

#include "ebb/core/kernels/philox.h"

namespace ebb::detail {

// Purpose of a key. Every seed is turned into a key of its purpose before anything is drawn, so
// that equal seeds share no numbers between purposes. (Initial values hash seed and name into keys
// of their own: core/parameters/initializer.cpp.)
enum class Purpose : std::uint64_t { thread, eager, session, shuffle, split };

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

}  // namespace ebb::detail
