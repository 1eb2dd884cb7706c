#pragma once
#include <array>
#include <cstdint>

namespace ebb {

// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). Four independent 32-bit words for each (key, counter); no state, so that any
// element can be drawn on any device, in any order, and drawn again.
struct Philox {
  using Words = std::array<std::uint32_t, 4>;

  static constexpr Words draw(std::uint64_t key, std::uint64_t high, std::uint64_t low) noexcept {
    Words x = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
               static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
    std::uint32_t k0 = static_cast<std::uint32_t>(key);
    std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * x[2];
      x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return x;
  }

  // The word of element `index` of the draw `counter` under `key`.
  static constexpr std::uint32_t word(std::uint64_t key, std::uint64_t counter,
                                      std::uint64_t index) noexcept {
    return draw(key, counter, index / 4)[index % 4];
  }
};

// A word to [0, 1) with 24 bits, exact in float and the same on every device.
constexpr float unit_interval(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace ebb
