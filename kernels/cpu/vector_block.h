#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
// Functions that take or return a Block are inlined here and never called across libraries, so it
// does not matter that the instruction set decides how a Block is passed.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace ebb::cpu {

// The bytes of the instruction set's vectors.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

// N numbers side by side (a type that GCC and Clang both have). Comparing two gives a mask, and
// `mask ? a : b` chooses by lane.
template <class T, int N>
struct LanesOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
  typedef T anywhere __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T, int N>
using Lanes = typename LanesOf<T, N>::type;

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
using Vector = Lanes<T, kLanes<T>>;
template <class T>
using BitVector = Lanes<Bits<T>, kLanes<T>>;

// 64 bytes of elements, the unit of pointwise code, as vectors. Every element goes through the same
// instructions, also in a tail, which is padded with ones: a result never depends on where an
// element lies or how a loop is cut.
template <class T>
struct Block {
  using Element = T;
  static constexpr int kVectors = 64 / kVectorBytes;
  Vector<T> vectors[kVectors];

  Block() = default;  // not initialised
  Block(T value) noexcept {
    for (auto& vector : vectors) vector = value - Vector<T>{};
  }
  Block& operator+=(const Block& b) noexcept { return *this = *this + b; }

  friend Block operator+(const Block& a, const Block& b) noexcept {
    return each([](auto x, auto y) { return x + y; }, a, b);
  }
  friend Block operator-(const Block& a, const Block& b) noexcept {
    return each([](auto x, auto y) { return x - y; }, a, b);
  }
  friend Block operator*(const Block& a, const Block& b) noexcept {
    return each([](auto x, auto y) { return x * y; }, a, b);
  }
  friend Block operator/(const Block& a, const Block& b) noexcept {
    return each([](auto x, auto y) { return x / y; }, a, b);
  }
  friend Block operator-(const Block& a) noexcept {
    return each([](auto x) { return -x; }, a);
  }
  // b where a is NaN.
  friend Block max(const Block& a, const Block& b) noexcept {
    return each([](auto x, auto y) { return x > y ? x : y; }, a, b);
  }

  // Applies f vector by vector.
  template <class F, class... Blocks>
  static Block each(const F& f, const Blocks&... blocks) noexcept {
    Block result;
    for (int i = 0; i < kVectors; ++i) result.vectors[i] = f(blocks.vectors[i]...);
    return result;
  }
};

// x < y by lane, for choose().
template <class T>
struct Less {
  const Block<T>&x, &y;
};
template <class T>
inline Less<T> operator<(const Block<T>& x, const Block<T>& y) noexcept {
  return {x, y};
}
template <class T>
inline Block<T> choose(const Less<T>& where, const Block<T>& a, const Block<T>& b) noexcept {
  return Block<T>::each([](auto x, auto y, auto u, auto v) { return x < y ? u : v; }, where.x,
                        where.y, a, b);
}

template <class T>
inline constexpr std::int64_t kBlock = 64 / static_cast<std::int64_t>(sizeof(T));

// Loads vector by vector. Through memcpy, GCC would copy in halves, from which no vector can be
// read at once.
template <class T>
requires std::is_floating_point_v<T>
inline Block<T> load(const T* from) noexcept {
  Block<T> block;
  const auto* vectors = reinterpret_cast<const typename LanesOf<T, kLanes<T>>::anywhere*>(from);
  for (int i = 0; i < Block<T>::kVectors; ++i) block.vectors[i] = vectors[i];
  return block;
}

template <class T>
inline void store(T* to, const Block<T>& block) noexcept {
  auto* vectors = reinterpret_cast<typename LanesOf<T, kLanes<T>>::anywhere*>(to);
  for (int i = 0; i < Block<T>::kVectors; ++i) vectors[i] = block.vectors[i];
}

// Loads and stores the first count elements, 0 < count < kBlock<T>, as many as there are.
template <class T>
requires std::is_floating_point_v<T>
inline Block<T> load_tail(const T* from, std::int64_t count, T padding = T(1)) noexcept {
  T elements[kBlock<T>];
  for (std::int64_t i = 0; i < kBlock<T>; ++i) elements[i] = i < count ? from[i] : padding;
  return load(elements);
}

template <class T>
inline void store_tail(T* to, const Block<T>& block, std::int64_t count) noexcept {
  T elements[kBlock<T>];
  store(elements, block);
  const T* from = elements;
  const auto put = [&]<std::int64_t kSome>(std::integral_constant<std::int64_t, kSome>) {
    if ((count & kSome) == 0) return;
    std::memcpy(to, from, kSome * sizeof(T));
    to += kSome;
    from += kSome;
  };
  put(std::integral_constant<std::int64_t, 8>());
  put(std::integral_constant<std::int64_t, 4>());
  put(std::integral_constant<std::int64_t, 2>());
  put(std::integral_constant<std::int64_t, 1>());
}

#if defined(__AVX512F__)
// Avoids copying element by element, which takes three times as long for a tensor of four numbers:
// the vector cannot be read while its pieces are on their way to the cache.
template <>
inline Block<float> load_tail(const float* from, std::int64_t count, float padding) noexcept {
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  Block<float> block;
  block.vectors[0] = _mm512_mask_loadu_ps(_mm512_set1_ps(padding), mask, from);
  return block;
}
template <>
inline Block<double> load_tail(const double* from, std::int64_t count, double padding) noexcept {
  const auto mask = static_cast<__mmask8>((1u << count) - 1);
  Block<double> block;
  block.vectors[0] = _mm512_mask_loadu_pd(_mm512_set1_pd(padding), mask, from);
  return block;
}
template <>
inline void store_tail(float* to, const Block<float>& block, std::int64_t count) noexcept {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), block.vectors[0]);
}
template <>
inline void store_tail(double* to, const Block<double>& block, std::int64_t count) noexcept {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), block.vectors[0]);
}
#elif defined(__AVX2__)
template <>
inline Block<float> load_tail(const float* from, std::int64_t count, float padding) noexcept {
  const __m256 pads = _mm256_set1_ps(padding);
  Block<float> block;
  for (int i = 0; i < 2; ++i) {
    const __m256i left = _mm256_set1_epi32(static_cast<int>(count) - 8 * i),
                  mask = _mm256_cmpgt_epi32(left, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    block.vectors[i] =
        _mm256_blendv_ps(pads, _mm256_maskload_ps(from + 8 * i, mask), _mm256_castsi256_ps(mask));
  }
  return block;
}
template <>
inline Block<double> load_tail(const double* from, std::int64_t count, double padding) noexcept {
  const __m256d pads = _mm256_set1_pd(padding);
  Block<double> block;
  for (int i = 0; i < 2; ++i) {
    const __m256i mask =
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(count - 4 * i), _mm256_setr_epi64x(0, 1, 2, 3));
    block.vectors[i] =
        _mm256_blendv_pd(pads, _mm256_maskload_pd(from + 4 * i, mask), _mm256_castsi256_pd(mask));
  }
  return block;
}
#endif

// Loads and stores count elements, 0 < count <= a block.
template <class T>
inline Block<T> load_some(const T* from, std::int64_t count, T padding = T(1)) noexcept {
  return count >= kBlock<T> ? load(from) : load_tail(from, count, padding);
}
template <class To, class T>
inline void store_some(To* to, const Block<T>& block, std::int64_t count) noexcept {
  if (count >= kBlock<T>) {
    store(to, block);
  } else {
    store_tail(to, block, count);
  }
}

// Whether scalars give the same bits as blocks (core/kernels/functors/host_device.h).
template <class F>
inline constexpr bool kExact = requires {
  requires F::exact;
};

template <class F, class T, class... Others>
inline Block<T> evaluate(const F& f, const Block<T>& x, const Others&... others) noexcept {
  if constexpr (kExact<F>) {
    return Block<T>::each(f, x, others...);
  } else {
    return f(x, others...);
  }
}

namespace detail {

template <class T, int N, int... I>
inline Lanes<T, N / 2> low_half(const Lanes<T, N>& x, std::integer_sequence<int, I...>) noexcept {
  return __builtin_shufflevector(x, x, I...);
}
template <class T, int N, int... I>
inline Lanes<T, N / 2> high_half(const Lanes<T, N>& x, std::integer_sequence<int, I...>) noexcept {
  return __builtin_shufflevector(x, x, (N / 2 + I)...);
}

// Reduces all lanes to one, by halves.
template <class T, int N, class Op>
inline T fold(const Lanes<T, N>& x, const Op& op) noexcept {
  if constexpr (N == 2) {
    return op(x[0], x[1]);
  } else {
    constexpr std::make_integer_sequence<int, N / 2> kHalf;
    return fold<T, N / 2>(op(low_half<T, N>(x, kHalf), high_half<T, N>(x, kHalf)), op);
  }
}

inline Vector<double> widen(const Vector<double>& x) noexcept { return x; }
inline Vector<double> widen(const Vector<float>& x) noexcept {
  constexpr int N = kLanes<float>;
  constexpr std::make_integer_sequence<int, N / 2> kHalf;
  return __builtin_convertvector((low_half<float, N>(x, kHalf)), Vector<double>) +
         __builtin_convertvector((high_half<float, N>(x, kHalf)), Vector<double>);
}

}  // namespace detail

// The sum, in double.
template <class T>
inline double sum(const Block<T>& block) noexcept {
  Vector<double> total = detail::widen(block.vectors[0]);
  for (int i = 1; i < Block<T>::kVectors; ++i) total += detail::widen(block.vectors[i]);
  return detail::fold<double, kLanes<double>>(total, [](auto x, auto y) { return x + y; });
}

template <class T>
inline T largest(const Block<T>& block) noexcept {
  const auto larger = [](auto x, auto y) { return x > y ? x : y; };
  Vector<T> best = block.vectors[0];
  for (int i = 1; i < Block<T>::kVectors; ++i) best = larger(block.vectors[i], best);
  return detail::fold<T, kLanes<T>>(best, larger);
}

}  // namespace ebb::cpu
