#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ebb/core/kernels/philox.h"

namespace ebb::cpu {

// Many draws side by side, so that a compiler vectorises the ten rounds; GCC unrolls loops of up to
// 16 turns instead.
inline constexpr std::int64_t kDraws = 32;
inline constexpr std::int64_t kWords = 4 * kDraws;

// out[i] = Philox::word(key, counter, first + i) for i < kWords; first a multiple of 4. Words are
// held in 64 bits: a vector instruction multiplies 32 bits by 32 to 64 in place, but does not
// narrow well.
inline void draw_words(std::uint64_t key, std::uint64_t counter, std::uint64_t first,
                       std::uint32_t* out) noexcept {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  std::uint64_t x0[kDraws], x1[kDraws], x2[kDraws], x3[kDraws];
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const std::uint64_t index = first / 4 + static_cast<std::uint64_t>(i);
    x0[i] = index & kLow;
    x1[i] = index >> 32;
    x2[i] = counter & kLow;
    x3[i] = counter >> 32;
  }
  std::uint64_t k0 = key & kLow, k1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const std::uint64_t p0 = 0xD2511F53 * x0[i], p1 = 0xCD9E8D57 * x2[i];
      x0[i] = p1 >> 32 ^ x1[i] ^ k0;
      x2[i] = p0 >> 32 ^ x3[i] ^ k1;
      x1[i] = p1 & kLow;
      x3[i] = p0 & kLow;
    }
    k0 = (k0 + 0x9E3779B9) & kLow;
    k1 = (k1 + 0xBB67AE85) & kLow;
  }
  for (std::int64_t i = 0; i < kDraws; ++i) {
    out[4 * i] = static_cast<std::uint32_t>(x0[i]);
    out[4 * i + 1] = static_cast<std::uint32_t>(x1[i]);
    out[4 * i + 2] = static_cast<std::uint32_t>(x2[i]);
    out[4 * i + 3] = static_cast<std::uint32_t>(x3[i]);
  }
}

// Calls body(i, words, count) for runs of [begin, end) of a draw, named {key, counter}: words[j]
// belongs to element i + j.
template <class Body>
inline void for_words(const std::uint64_t* name, std::int64_t begin, std::int64_t end,
                      const Body& body) {
  std::uint32_t words[kWords];
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t first = i / 4 * 4;
    draw_words(name[0], name[1], static_cast<std::uint64_t>(first), words);
    const std::int64_t count = std::min(end, first + kWords) - i;
    body(i, words + (i - first), count);
    i += count;
  }
}

// to[j] = from[j] / (1 - probability) where element first + j of the draw is kept, else 0.
template <class T>
inline void drop(const T* from, T* to, std::int64_t count, double probability,
                 const std::uint64_t* name, std::int64_t first) noexcept {
  // unit_interval(word) >= probability, in whole numbers.
  const auto least = static_cast<std::uint32_t>(std::ceil(probability * 0x1p24));
  const T kept = static_cast<T>(1 - probability);
  for_words(name, first, first + count,
            [=](std::int64_t i, const std::uint32_t* words, std::int64_t n) {
              const T* x = from + (i - first);
              T* y = to + (i - first);
              for (std::int64_t j = 0; j < n; ++j) {
                const T scaled = x[j] / kept;  // of all, so that blocks are computed
                y[j] = words[j] >> 8 >= least ? scaled : T(0);
              }
            });
}

}  // namespace ebb::cpu
