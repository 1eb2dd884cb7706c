#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cpu/vector_block.h"

// Numbers of 16 bits as blocks of floats: widened when loaded, rounded when stored. All go through
// the same instructions, so that a result depends only on its operands.
namespace ebb::cpu {

// The type to compute in for values stored as T.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

namespace detail {

using HalfBits = Lanes<std::uint16_t, kLanes<float>>;
using HalfBitsAnywhere = LanesOf<std::uint16_t, kLanes<float>>::anywhere;

template <class Half>
inline Vector<float> widen(HalfBits bits) noexcept {
  if constexpr (std::is_same_v<Half, BFloat16>) {
    return std::bit_cast<Vector<float>>(__builtin_convertvector(bits, BitVector<float>) << 16);
  } else {
#if defined(__AVX512F__)
    return std::bit_cast<Vector<float>>(_mm512_cvtph_ps(std::bit_cast<__m256i>(bits)));
#elif defined(__AVX__) && defined(__F16C__)
    return std::bit_cast<Vector<float>>(_mm256_cvtph_ps(std::bit_cast<__m128i>(bits)));
#else
    Vector<float> values;
    for (int i = 0; i < kLanes<float>; ++i) values[i] = static_cast<float>(Half::of_bits(bits[i]));
    return values;
#endif
  }
}

template <class Half>
inline HalfBits narrow(Vector<float> values) noexcept {
  if constexpr (std::is_same_v<Half, BFloat16>) {
    using Words = BitVector<float>;
    const auto bits = std::bit_cast<Words>(values);
    const Words rounded = (bits + (bits >> 16 & 1u) + 0x7FFFu) >> 16;
    const Words nan = Words{} + 0x7FC0u;
    return __builtin_convertvector(values != values ? nan : rounded, HalfBits);
  } else {
#if defined(__AVX512F__)
    return std::bit_cast<HalfBits>(
        _mm512_cvtps_ph(std::bit_cast<__m512>(values), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX__) && defined(__F16C__)
    return std::bit_cast<HalfBits>(
        _mm256_cvtps_ph(std::bit_cast<__m256>(values), _MM_FROUND_TO_NEAREST_INT));
#else
    HalfBits bits;
    for (int i = 0; i < kLanes<float>; ++i) bits[i] = Half(values[i]).bits;
    return bits;
#endif
  }
}

}  // namespace detail

template <class Half>
requires kIsHalf<Half>
inline Block<float> load(const Half* from) noexcept {
  Block<float> block;
  const auto* vectors = reinterpret_cast<const detail::HalfBitsAnywhere*>(from);
  for (int i = 0; i < Block<float>::kVectors; ++i)
    block.vectors[i] = detail::widen<Half>(vectors[i]);
  return block;
}

template <class Half>
requires kIsHalf<Half>
inline void store(Half* to, const Block<float>& block) noexcept {
  auto* vectors = reinterpret_cast<detail::HalfBitsAnywhere*>(to);
  for (int i = 0; i < Block<float>::kVectors; ++i)
    vectors[i] = detail::narrow<Half>(block.vectors[i]);
}

template <class Half>
requires kIsHalf<Half>
inline Block<float> load_tail(const Half* from, std::int64_t count) noexcept {
  Half elements[kBlock<float>];
  for (std::int64_t i = 0; i < kBlock<float>; ++i) elements[i] = i < count ? from[i] : Half(1.f);
  return load(elements);
}

template <class Half>
requires kIsHalf<Half>
inline void store_tail(Half* to, const Block<float>& block, std::int64_t count) noexcept {
  Half elements[kBlock<float>];
  store(elements, block);
  for (std::int64_t i = 0; i < count; ++i) to[i] = elements[i];
}

// to[i] = from[i]; one of them has 16 bits, the other is float.
template <class From, class To>
inline void convert_run(const From* from, To* to, std::int64_t count) noexcept {
  std::int64_t i = 0;
  for (; i + kBlock<float> <= count; i += kBlock<float>) store(to + i, load(from + i));
  if (i < count) store_tail(to + i, load_tail(from + i, count - i), count - i);
}

// Converts to floats, from T of 16 bits or from floats.
template <class From>
inline void widen_run(const From* from, float* to, std::int64_t count) noexcept {
  if constexpr (kIsHalf<From>)
    convert_run(from, to, count);
  else
    std::copy_n(from, count, to);
}

// The number of elements of 16 bits that are computed with as floats at a time, on the stack.
inline constexpr std::int64_t kChunk = 512;

namespace detail {
template <class T>
auto* computed(T* values, float* widened) noexcept {
  if constexpr (kIsHalf<std::remove_const_t<T>>)
    return widened;
  else
    return values;
}
}  // namespace detail

// Calls body(in, out, first, count) on elements begin .. end in the type to compute in: in place,
// or for 16 bits in chunks of floats. `out` is read as well, and may be `in`.
template <class In, class Out, class Body>
inline void for_computed(In* in, Out* out, std::int64_t begin, std::int64_t end, const Body& body) {
  constexpr bool kHalfIn = kIsHalf<std::remove_const_t<In>>, kHalfOut = kIsHalf<Out>;
  if constexpr (!kHalfIn && !kHalfOut) {
    body(in + begin, out + begin, begin, end - begin);
  } else {
    float widened_in[kHalfIn ? kChunk : 1], widened_out[kHalfOut ? kChunk : 1];
    for (std::int64_t i = begin; i < end; i += kChunk) {
      const std::int64_t count = std::min(kChunk, end - i);
      if constexpr (kHalfIn) convert_run(in + i, widened_in, count);
      if constexpr (kHalfOut) convert_run(out + i, widened_out, count);
      body(detail::computed(in + i, widened_in), detail::computed(out + i, widened_out), i, count);
      if constexpr (kHalfOut) convert_run(widened_out, out + i, count);
    }
  }
}

}  // namespace ebb::cpu
