#pragma once
#include "ebb/core/base/half.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// A draw is named by an i64[2] tensor {key, counter}; element i takes word i % 4 of
// Philox::draw(key, counter, i / 4), so a draw can be repeated anywhere (philox.h).
// In a graph it is a session's random state {key, run count} and the number of a node.
struct DrawAttributes {
  std::int64_t node = -1;  // below 2^32; -1: the second number is the counter

  constexpr std::uint64_t counter(std::int64_t second) const noexcept {
    const auto number = static_cast<std::uint64_t>(second);
    return node < 0 ? number : number << 32 | static_cast<std::uint64_t>(node);
  }
};

struct RandomAttributes {
  double a = 0;  // uniform: low; normal: mean; bernoulli: probability of a one, dropout: of a zero
  double b = 1;  // uniform: high, both numbers of the dtype; normal: standard deviation
  std::int64_t first = 0;    // dropout: x is the draw's elements from this one on
  DrawAttributes draw = {};  // dropout: in a graph its launch makes the draw too
};

// The integers of randint: `count` from `low` on, at most 2^32 of them.
struct RandintAttributes {
  std::int64_t low = 0;
  std::uint64_t count = 1;

  // The integer of a word: floor(word count / 2^32) from low on.
  template <class T>
  static constexpr T of(std::int64_t low, std::uint64_t count, std::uint32_t word) noexcept {
    return static_cast<T>(low + static_cast<std::int64_t>(word * count >> 32));
  }
};

// The largest number of 16 bits below `bound`. It keeps uniform draws, once rounded, below the open
// end of their interval.
template <class Half>
constexpr Half largest_below(float bound) noexcept {
  const Half nearest(bound);
  if (static_cast<float>(nearest) < bound) return nearest;
  const std::uint16_t bits = nearest.bits;
  if ((bits & 0x7FFF) == 0) return Half::of_bits(0x8001);  // zero, of either sign
  return Half::of_bits(static_cast<std::uint16_t>((bits & 0x8000) != 0 ? bits + 1 : bits - 1));
}

namespace cpu {
// Input: a session's random state, i64[2] {key, run count}; output i64[2] = {key, (run count << 32)
// | node}.
Status draw(const KernelContext&);
// Input: the random state*; adds one to its run count.
Status next_run(const KernelContext&);
// Input: draw. Output floating, the same numbers for every dtype, up to rounding.
//
// uniform is in [a, b). With T float (double for f64) and u = unit_interval(word), x = fma(T(b -
// a), T(u), T(a)), or a where that is not below b. For f16 and bf16 x is rounded, to at most
// largest_below(b) where a < b.
//
// bernoulli is 1 with probability a.
//
// normal is by Box and Muller, in f64 for any output. Elements 2 i and 2 i + 1 have the words w and
// v. With u = 1 - unit_interval(w), in (0, 1], and t = unit_interval(v) they are
//   a + b sqrt(-2 log(u)) cos(2 pi t)  and  a + b sqrt(-2 log(u)) sin(2 pi t),
// cosine and sine of the exact t (a GPU's cospi(2 t)), each within 4 ulp for a = 0, then rounded
// (for f16 and bf16 to f32, then to them).
KernelFunction uniform, normal, bernoulli;
// Input: draw; output i32, i64 or u8, attributes RandintAttributes.
Status randint(const KernelContext&);
// Inputs x, draw; out = x / (1 - a) where unit_interval(word) >= a, else 0. out may be x. The
// gradient is the same kernel on dy.
Status dropout(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
