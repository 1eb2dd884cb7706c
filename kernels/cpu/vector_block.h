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

// The first count elements, 0 < count < kBlock<T>, and as many as there are.
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

#if defined(__AVX512F__)
// Element by element, a tensor of four numbers would take three times as long: the vector cannot be
// read while the pieces it was written in are still on their way to the cache.
template <>
inline Block<float> load_tail(const float* from, std::int64_t count, float padding) noexcept {
  Block<float> block;
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  _mm512_store_ps(block.data(), _mm512_mask_loadu_ps(_mm512_set1_ps(padding), mask, from));
  return block;
}
template <>
inline Block<double> load_tail(const double* from, std::int64_t count, double padding) noexcept {
  Block<double> block;
  const auto mask = static_cast<__mmask8>((1u << count) - 1);
  _mm512_store_pd(block.data(), _mm512_mask_loadu_pd(_mm512_set1_pd(padding), mask, from));
  return block;
}
template <>
inline void store_tail(float* to, const Block<float>& block, std::int64_t count) noexcept {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1),
                        _mm512_load_ps(block.data()));
}
template <>
inline void store_tail(double* to, const Block<double>& block, std::int64_t count) noexcept {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), _mm512_load_pd(block.data()));
}
#endif

}  // namespace ebb::cpu
