#include "ebb/core/parameters/initializer.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/random.h"

namespace ebb {
namespace initializers {

Initializer zeros() { return {}; }
Initializer constant(double value) { return {.kind = Initializer::constant, .a = value}; }
Initializer uniform(double low, double high) {
  return {.kind = Initializer::uniform, .a = low, .b = high};
}
Initializer normal(double mean, double standard_deviation) {
  return {.kind = Initializer::normal, .a = mean, .b = standard_deviation};
}
Initializer lstm_bias(double bound) {
  return {.kind = Initializer::uniform, .a = -bound, .b = bound, .second_quarter = 1};
}
Initializer glorot_uniform(std::int64_t fan_in, std::int64_t fan_out) {
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return uniform(-limit, limit);
}
Initializer he_normal(std::int64_t fan_in) {
  return normal(0, std::sqrt(2.0 / static_cast<double>(fan_in)));
}

}  // namespace initializers

namespace detail {
namespace {

// Seed and name make the key of Philox, value i its i-th block. Files of trained models do not
// depend on this, but published results of a seed do: it never changes.
std::uint64_t key_of(Seed seed, std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::uint64_t key = seed.value + hash;  // splitmix64
  key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
  key = (key ^ key >> 27) * 0x94D049BB133111EB;
  return key ^ key >> 31;
}

// Two words to [0, 1) with 53 bits.
double unit_interval(std::uint32_t high, std::uint32_t low) noexcept {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

double value_of(const Initializer& initializer, std::uint64_t key, std::uint64_t index) noexcept {
  const Philox::Words words = Philox::draw(key, 0, index);
  const double u = unit_interval(words[0], words[1]);
  switch (initializer.kind) {
    case Initializer::constant:
      return initializer.a;
    case Initializer::uniform:
      return initializer.a + (initializer.b - initializer.a) * u;
    case Initializer::normal:
      break;
  }
  // Box & Muller, Annals of Mathematical Statistics 29 (1958); 1 - u is never 0.
  const double radius = std::sqrt(-2 * std::log(1 - u));
  const double angle = 2 * std::numbers::pi * unit_interval(words[2], words[3]);
  return initializer.a + initializer.b * radius * std::cos(angle);
}

template <class T>
void draw(const Initializer& initializer, std::uint64_t key, std::int64_t count, void* out) {
  const bool has_end = initializer.kind == Initializer::uniform && initializer.a < initializer.b;
  T* values = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = value_of(initializer, key, static_cast<std::uint64_t>(i));
    const bool raised = i >= count / 4 && i < count / 2;
    const double offset = raised ? initializer.second_quarter : 0;
    values[i] = convert<T>(raised ? value + offset : value);
    if constexpr (kIsHalf<T>) {
      const auto end = static_cast<float>(initializer.b + offset);
      if (has_end && static_cast<float>(values[i]) >= end) values[i] = largest_below<T>(end);
    }
  }
}

}  // namespace

void draw_initial_values(const Initializer& initializer, Seed seed, std::string_view name,
                         const Spec& spec, void* values) {
  const std::uint64_t key = key_of(seed, name);
  const std::int64_t count = spec.shape.elements();
  if (spec.dtype == DType::f32) {
    draw<float>(initializer, key, count, values);
  } else if (spec.dtype == DType::f64) {
    draw<double>(initializer, key, count, values);
  } else if (spec.dtype == DType::f16) {
    draw<Float16>(initializer, key, count, values);
  } else if (spec.dtype == DType::bf16) {
    draw<BFloat16>(initializer, key, count, values);
  } else if (initializer.kind == Initializer::constant && initializer.a == 0) {
    if (count > 0) std::memset(values, 0, spec.bytes());
  } else {
    throw Error("[initialize] '" + std::string(name) + "' is " + spec.to_string() +
                ": only floating ones start at other values than zero");
  }
}

}  // namespace detail
}  // namespace ebb
