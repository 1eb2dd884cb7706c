#include "ebb/core/kernels/random.h"

#include <cmath>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/philox_words.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {
namespace {

// Fills the output from the words of a draw: body(words, count, out, T{}) over all threads. T is
// the type that the output is stored as; out is float where that has 16 bits.
template <class Body>
Status draw(const Buffer& named, const Buffer& out, const Body& body) {
  const auto* name = named.as<const std::uint64_t>();
  return for_floating(out.spec.dtype, [&]<class T>(T type) {
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for_words(name, begin, end,
                [&](std::int64_t i, const std::uint32_t* words, std::int64_t count) {
                  if constexpr (kIsHalf<T>) {
                    float values[kWords];
                    body(words, count, values, type);
                    convert_run(values, to + i, count);
                  } else {
                    body(words, count, to + i, type);
                  }
                });
    });
  });
}

// Standard normals of Box and Muller from pairs of words w, v: with u = 1 - unit(w) in (0, 1] and
// t = unit(v), sqrt(-2 log u) times cos(2 pi t), then sin(2 pi t). Whole blocks of pairs, which lie
// in a run of kWords.
void box_muller(const std::uint32_t* words, std::int64_t count, double* out) noexcept {
  constexpr std::int64_t kPairs = kBlock<double>;
  for (std::int64_t i = 0; i < count; i += 2 * kPairs) {
    double u[kPairs], turn[kPairs], radius[kPairs], sines[kPairs], cosines[kPairs];
    for (std::int64_t j = 0; j < kPairs; ++j) {
      u[j] = 1 - static_cast<double>(unit_interval(words[i + 2 * j]));
      turn[j] = static_cast<double>(unit_interval(words[i + 2 * j + 1]));
    }
    store(radius, -2 * log(load(u)));
    for (double& r : radius) r = std::sqrt(r);
    Block<double> sine, cosine;
    sine_and_cosine(load(turn), sine, cosine);
    store(sines, load(radius) * sine);
    store(cosines, load(radius) * cosine);
    for (std::int64_t j = 0; j < kPairs; ++j) {
      out[i + 2 * j] = cosines[j];
      out[i + 2 * j + 1] = sines[j];
    }
  }
}

}  // namespace

// A product and a sum rounded apart would differ between compilers; one fused operation cannot.
Status uniform(const KernelContext& context) {
  const auto& attributes = context.attribute<RandomAttributes>();
  return draw(context.inputs[0], context.outputs[0],
              [&](const std::uint32_t* words, std::int64_t count, auto* out, auto stored) {
                using T = std::remove_reference_t<decltype(*out)>;
                const T low = static_cast<T>(attributes.a), high = static_cast<T>(attributes.b);
                const T width = static_cast<T>(attributes.b - attributes.a);
                for (std::int64_t i = 0; i < count; ++i) {
                  const T x = std::fma(width, static_cast<T>(unit_interval(words[i])), low);
                  out[i] = x < high ? x : low;  // x may be rounded up to the open end
                }
                if constexpr (kIsHalf<decltype(stored)>) {
                  if (!(low < high)) return;
                  const T most = convert<T>(largest_below<decltype(stored)>(high));
                  for (std::int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], most);
                }
              });
}

// In double whatever the result's type: the same numbers in f32, rounded once more.
Status normal(const KernelContext& context) {
  const auto& attributes = context.attribute<RandomAttributes>();
  return draw(context.inputs[0], context.outputs[0],
              [&](const std::uint32_t* words, std::int64_t count, auto* out, auto) {
                using T = std::remove_reference_t<decltype(*out)>;
                double normals[kWords];
                box_muller(words, round_up(count, 2 * kBlock<double>), normals);
                for (std::int64_t i = 0; i < count; ++i)
                  out[i] = static_cast<T>(attributes.a + attributes.b * normals[i]);
              });
}

Status bernoulli(const KernelContext& context) {
  const double probability = context.attribute<RandomAttributes>().a;
  return draw(context.inputs[0], context.outputs[0],
              [&](const std::uint32_t* words, std::int64_t count, auto* out, auto) {
                using T = std::remove_reference_t<decltype(*out)>;
                for (std::int64_t i = 0; i < count; ++i)
                  out[i] = static_cast<double>(unit_interval(words[i])) < probability ? T(1) : T(0);
              });
}

Status randint(const KernelContext& context) {
  const auto& told = context.attribute<RandintAttributes>();
  const auto* name = context.inputs[0].as<const std::uint64_t>();
  const Buffer& out = context.outputs[0];
  return for_integer(out.spec.dtype, [&]<class T>(T) {
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [=, &told](std::int64_t begin, std::int64_t end) {
      for_words(name, begin, end,
                [&](std::int64_t i, const std::uint32_t* words, std::int64_t count) {
                  for (std::int64_t j = 0; j < count; ++j)
                    to[i + j] = told.of<T>(told.low, told.count, words[j]);
                });
    });
  });
}

Status dropout(const KernelContext& context) {
  const auto& told = context.attribute<RandomAttributes>();
  const Buffer &x = context.inputs[0], &out = context.outputs[0];
  const auto* draw = context.inputs[1].as<const std::int64_t>();
  const std::uint64_t name[] = {static_cast<std::uint64_t>(draw[0]), told.draw.counter(draw[1])};
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const T* from = x.as<const T>();
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for_computed(from, to, begin, end,
                   [&](auto* in, auto* result, std::int64_t i, std::int64_t n) {
                     drop(in, result, n, told.a, name, told.first + i);
                   });
    });
  });
}

}  // namespace ebb::cpu
