#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/philox.h"

namespace ebb::cpu {

// Many draws side by side, so that a compiler vectorises the ten rounds.
inline constexpr std::int64_t kDraws = 16;
inline constexpr std::int64_t kWords = 4 * kDraws;

// out[i] = Philox::word(key, counter, first + i) for i < kWords; first a multiple of 4.
inline void draw_words(std::uint64_t key, std::uint64_t counter, std::uint64_t first,
                       std::uint32_t* out) noexcept {
  std::uint32_t x0[kDraws], x1[kDraws], x2[kDraws], x3[kDraws];
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const std::uint64_t index = first / 4 + static_cast<std::uint64_t>(i);
    x0[i] = static_cast<std::uint32_t>(index);
    x1[i] = static_cast<std::uint32_t>(index >> 32);
    x2[i] = static_cast<std::uint32_t>(counter);
    x3[i] = static_cast<std::uint32_t>(counter >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x0[i];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * x2[i];
      const std::uint32_t y0 = static_cast<std::uint32_t>(p1 >> 32) ^ x1[i] ^ k0;
      const std::uint32_t y2 = static_cast<std::uint32_t>(p0 >> 32) ^ x3[i] ^ k1;
      x1[i] = static_cast<std::uint32_t>(p1);
      x3[i] = static_cast<std::uint32_t>(p0);
      x0[i] = y0;
      x2[i] = y2;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (std::int64_t i = 0; i < kDraws; ++i) {
    out[4 * i] = x0[i];
    out[4 * i + 1] = x1[i];
    out[4 * i + 2] = x2[i];
    out[4 * i + 3] = x3[i];
  }
}

// Calls body(i, words, count) for runs of [begin, end): words[j] belongs to element i + j.
template <class Body>
inline void for_words(std::uint64_t key, std::uint64_t counter, std::int64_t begin,
                      std::int64_t end, const Body& body) {
  std::uint32_t words[kWords];
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t first = i / 4 * 4;
    draw_words(key, counter, static_cast<std::uint64_t>(first), words);
    const std::int64_t count = std::min(end, first + kWords) - i;
    body(i, words + (i - first), count);
    i += count;
  }
}

// to[j] = from[j] / (1 - probability) where element first + j of the draw is kept, else 0.
template <class T>
inline void drop(const T* from, T* to, std::int64_t count, double probability, std::uint64_t key,
                 std::uint64_t counter, std::int64_t first) noexcept {
  const T kept = static_cast<T>(1 - probability);
  for_words(key, counter, first, first + count,
            [&](std::int64_t i, const std::uint32_t* words, std::int64_t n) {
              const T* x = from + (i - first);
              T* y = to + (i - first);
              for (std::int64_t j = 0; j < n; ++j)
                y[j] = static_cast<double>(unit_interval(words[j])) >= probability ? x[j] / kept
                                                                                   : T(0);
            });
}

}  // namespace ebb::cpu
