#include "ebb/core/kernels/random.h"

#include <cmath>
#include <numbers>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/philox_words.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// The output's elements from the words of a draw: body(i, words, count, out) over all threads.
template <class Body>
void draw(const Buffer& name, const Buffer& out, const Body& body) {
  const auto* draw = name.as<const std::int64_t>();
  const auto key = static_cast<std::uint64_t>(draw[0]),
             counter = static_cast<std::uint64_t>(draw[1]);
  for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for_words(key, counter, begin, end,
                [&](std::int64_t i, const std::uint32_t* words, std::int64_t count) {
                  body(words, count, to + i);
                });
    });
  });
}

}  // namespace

// A product and a sum rounded apart would differ between compilers; one fused operation cannot.
void uniform(const KernelContext& context) {
  const auto& attributes = context.attribute<RandomAttributes>();
  draw(context.inputs[0], context.outputs[0],
       [&](const std::uint32_t* words, std::int64_t count, auto* out) {
         using T = std::remove_reference_t<decltype(*out)>;
         const T low = static_cast<T>(attributes.a), high = static_cast<T>(attributes.b);
         const T width = static_cast<T>(attributes.b - attributes.a);
         for (std::int64_t i = 0; i < count; ++i) {
           const T x = std::fma(width, static_cast<T>(unit_interval(words[i])), low);
           out[i] = x < high ? x : low;  // what was rounded up to the open end
         }
       });
}

// In double whatever the result's type: initial values are few, and should be the same everywhere.
void normal(const KernelContext& context) {
  const auto& attributes = context.attribute<RandomAttributes>();
  draw(context.inputs[0], context.outputs[0],
       [&](const std::uint32_t* words, std::int64_t count, auto* out) {
         using T = std::remove_reference_t<decltype(*out)>;
         for (std::int64_t i = 0; i < count; i += 2) {  // runs begin at multiples of 4
           const double u = 1 - static_cast<double>(unit_interval(words[i]));  // (0, 1]
           const double angle =
               2 * std::numbers::pi * static_cast<double>(unit_interval(words[i + 1]));
           const double radius = attributes.b * std::sqrt(-2 * std::log(u));
           out[i] = static_cast<T>(attributes.a + radius * std::cos(angle));
           if (i + 1 < count) out[i + 1] = static_cast<T>(attributes.a + radius * std::sin(angle));
         }
       });
}

void bernoulli(const KernelContext& context) {
  const double probability = context.attribute<RandomAttributes>().a;
  draw(context.inputs[0], context.outputs[0],
       [&](const std::uint32_t* words, std::int64_t count, auto* out) {
         using T = std::remove_reference_t<decltype(*out)>;
         for (std::int64_t i = 0; i < count; ++i)
           out[i] = static_cast<double>(unit_interval(words[i])) < probability ? T(1) : T(0);
       });
}

void dropout(const KernelContext& context) {
  const double probability = context.attribute<RandomAttributes>().a;
  const Buffer &x = context.inputs[0], &out = context.outputs[0];
  const auto* name = context.inputs[1].as<const std::int64_t>();
  const auto key = static_cast<std::uint64_t>(name[0]),
             counter = static_cast<std::uint64_t>(name[1]);
  for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = x.as<const T>();
    T* to = out.as<T>();
    for_pieces(out.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      drop(from + begin, to + begin, end - begin, probability, key, counter, begin);
    });
  });
}

}  // namespace ebb::cpu
