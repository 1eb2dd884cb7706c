#pragma once
// The only header that includes Eigen. Alignment of Eigen's own types follows the instruction set,
// so none of them leaves kernels/cpu.
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined operand of its own AVX-512 intrinsics for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#include <Eigen/Core>
#include <cstdint>

namespace ebb::cpu {

// 64 bytes of elements, which pointwise code works on at a time. Every element goes through the
// vectorised functions, those of a tail too (padded with ones, which no function minds): a result
// never depends on where in memory an element lies, as it would with Eigen's own loops, which
// peel elements off until the destination is aligned.
template <class T>
using Block = Eigen::Array<T, 64 / sizeof(T), 1>;

template <class T>
inline constexpr std::int64_t kBlock = 64 / static_cast<std::int64_t>(sizeof(T));

template <class T>
inline Block<T> load(const T* from) noexcept {
  return Eigen::Map<const Block<T>>(from);
}

template <class T>
inline void store(T* to, const Block<T>& block) noexcept {
  Eigen::Map<Block<T>>{to} = block;
}

// The first count elements, count < kBlock<T>.
template <class T>
inline Block<T> load_tail(const T* from, std::int64_t count, T padding = T(1)) noexcept {
  Block<T> block = Block<T>::Constant(padding);
  for (std::int64_t i = 0; i < count; ++i) block.data()[i] = from[i];
  return block;
}

template <class T>
inline void store_tail(T* to, const Block<T>& block, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) to[i] = block.data()[i];
}

}  // namespace ebb::cpu
