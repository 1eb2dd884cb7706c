#pragma once
#include <cstdint>

#include "ebb/core/kernels/philox.h"

namespace ebb::detail {

// What a key is drawn under for. Every seed becomes a key of its purpose before anything is drawn,
// so that no two draws of a program share numbers, though all its seeds be the same. (Initial
// values hash seed and name into keys of their own: core/parameters/initializer.cpp.)
enum class Purpose : std::uint64_t { thread, eager, session, shuffle, split };

// A key from a block of random words.
constexpr std::uint64_t first_words(const Philox::Words& words) noexcept {
  return std::uint64_t{words[1]} << 32 | words[0];
}

// Independent keys for each (seed, purpose, index): words of a Philox block that nobody else reads,
// since nothing is drawn under a bare seed.
constexpr std::uint64_t derive_key(std::uint64_t seed, Purpose purpose,
                                   std::uint64_t index = 0) noexcept {
  return first_words(Philox::draw(seed, static_cast<std::uint64_t>(purpose), index));
}

}  // namespace ebb::detail
