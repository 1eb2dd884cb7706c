#include "ebb/core/parameters/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/kernels/collective.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/random.h"

namespace ebb {
namespace initializers {
namespace {

// Uniform in +-sqrt(square).
Initializer within(double square) {
  const double limit = std::sqrt(square);
  return uniform(-limit, limit);
}
Initializer of_variance(double variance) { return normal(0, std::sqrt(variance)); }

}  // namespace

Initializer zeros() { return {}; }
Initializer ones() { return constant(1); }
Initializer constant(double value) { return {.kind = Initializer::constant, .a = value}; }
Initializer uniform(double low, double high) {
  return {.kind = Initializer::uniform, .a = low, .b = high};
}
Initializer normal(double mean, double standard_deviation) {
  return {.kind = Initializer::normal, .a = mean, .b = standard_deviation};
}
Initializer truncated_normal(double mean, double standard_deviation) {
  return {.kind = Initializer::truncated_normal, .a = mean, .b = standard_deviation};
}
Initializer orthogonal(double gain) { return {.kind = Initializer::orthogonal, .a = gain}; }
Initializer lstm_bias(double bound) {
  return {.kind = Initializer::uniform, .a = -bound, .b = bound, .second_quarter = 1};
}

Initializer glorot_uniform(std::int64_t fan_in, std::int64_t fan_out) {
  return within(6.0 / static_cast<double>(fan_in + fan_out));
}
Initializer glorot_normal(std::int64_t fan_in, std::int64_t fan_out) {
  return of_variance(2.0 / static_cast<double>(fan_in + fan_out));
}
Initializer he_uniform(std::int64_t fan_in) { return within(6.0 / static_cast<double>(fan_in)); }
Initializer he_normal(std::int64_t fan_in) {
  return of_variance(2.0 / static_cast<double>(fan_in));
}
Initializer lecun_uniform(std::int64_t fan_in) { return within(3.0 / static_cast<double>(fan_in)); }
Initializer lecun_normal(std::int64_t fan_in) {
  return of_variance(1.0 / static_cast<double>(fan_in));
}

}  // namespace initializers

namespace detail {
namespace {

// The Philox key of seed and name; value i is drawn from block i. Files of trained models do not
// depend on this, but published results of a seed do: it must never change.
std::uint64_t key_of(Seed seed, std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::uint64_t key = seed.value + hash;  // splitmix64
  key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
  key = (key ^ key >> 27) * 0x94D049BB133111EB;
  return key ^ key >> 31;
}

// Maps two words to [0, 1), with 53 bits.
double unit_interval(std::uint32_t high, std::uint32_t low) noexcept {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// Box & Muller, Annals of Mathematical Statistics 29 (1958); 1 - u is never 0.
double normal_value(const Philox::Words& words, double mean, double deviation) noexcept {
  const double radius = std::sqrt(-2 * std::log(1 - unit_interval(words[0], words[1])));
  const double angle = 2 * std::numbers::pi * unit_interval(words[2], words[3]);
  return mean + deviation * radius * std::cos(angle);
}

double value_of(const Initializer& initializer, std::uint64_t key, std::uint64_t index) noexcept {
  const Philox::Words words = Philox::draw(key, 0, index);
  switch (initializer.kind) {
    case Initializer::constant:
    case Initializer::orthogonal:  // drawn as a whole, not here
      return initializer.a;
    case Initializer::uniform:
      return initializer.a + (initializer.b - initializer.a) * unit_interval(words[0], words[1]);
    case Initializer::normal:
      return normal_value(words, initializer.a, initializer.b);
    case Initializer::truncated_normal:
      break;
  }
  double z = normal_value(words, 0, 1);
  for (std::uint64_t again = 1; std::abs(z) > 2; ++again)
    z = normal_value(Philox::draw(key, again, index), 0, 1);
  return initializer.a + initializer.b * z;
}

// Dot product with eight partial sums, which a compiler can put into one vector.
double dot(const double* a, const double* b, std::size_t length) noexcept {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t k = 0;
  for (; k + kSums <= length; k += kSums)
    for (std::size_t i = 0; i < kSums; ++i) sums[i] += a[k + i] * b[k + i];
  for (; k < length; ++k) sums[0] += a[k] * b[k];
  return std::accumulate(sums, sums + kSums, 0.0);
}

// `count` orthogonal vectors of length 1, one behind the other. Normal vectors are made orthogonal
// by Gram and Schmidt's steps, twice for each since once loses digits (Giraud et al., Numerische
// Mathematik 101, 2005). The remainder keeps its direction, so the result is evenly distributed
// (Mezzadri, Notices of the AMS 54, 2007).
std::vector<double> orthogonal_vectors(std::size_t count, std::size_t length, std::uint64_t key) {
  std::vector<double> vectors(count * length);
  for (std::size_t i = 0; i < count; ++i) {
    double* const vector = vectors.data() + i * length;
    for (std::size_t k = 0; k < length; ++k)
      vector[k] = normal_value(Philox::draw(key, 0, i * length + k), 0, 1);
    for (int time = 0; time < 2; ++time)
      for (std::size_t j = 0; j < i; ++j) {
        const double* const other = vectors.data() + j * length;
        const double part = dot(vector, other, length);
        for (std::size_t k = 0; k < length; ++k) vector[k] -= part * other[k];
      }
    const double norm = std::sqrt(dot(vector, vector, length));
    for (std::size_t k = 0; k < length; ++k) vector[k] /= norm;
  }
  return vectors;
}

template <class T>
void draw_orthogonal(double gain, std::uint64_t key, const Shape& shape, void* out) {
  const auto elements = static_cast<std::size_t>(shape.elements());
  if (elements == 0) return;
  const auto rows = static_cast<std::size_t>(shape.dim(0)), columns = elements / rows;
  const std::size_t length = std::max(rows, columns);
  const std::vector<double> vectors = orthogonal_vectors(std::min(rows, columns), length, key);
  T* values = static_cast<T*>(out);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      *values++ = convert<T>(gain * (rows < columns ? vectors[row * length + column]
                                                    : vectors[column * length + row]));
}

// The largest T below a bound: a value in f32 or 16 bits may be rounded up to the bound.
template <class T>
T last_before(float bound) {
  if constexpr (kIsHalf<T>)
    return largest_below<T>(bound);
  else
    return std::nextafter(bound, -std::numeric_limits<float>::infinity());
}

template <class T>
void draw(const Initializer& initializer, std::uint64_t key, const Shape& shape, void* out) {
  if (initializer.kind == Initializer::orthogonal)
    return draw_orthogonal<T>(initializer.a, key, shape, out);
  const std::int64_t count = shape.elements();
  const bool has_end = initializer.kind == Initializer::uniform && initializer.a < initializer.b;
  T* values = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = value_of(initializer, key, static_cast<std::uint64_t>(i));
    const bool raised = i >= count / 4 && i < count / 2;
    const double offset = raised ? initializer.second_quarter : 0;
    values[i] = convert<T>(raised ? value + offset : value);
    if constexpr (!std::is_same_v<T, double>) {
      const auto end = static_cast<float>(initializer.b + offset);
      if (has_end && static_cast<float>(values[i]) >= end) values[i] = last_before<T>(end);
    }
  }
}

}  // namespace

void draw_initial_values(const Initializer& initializer, Seed seed, std::string_view name,
                         const Spec& spec, void* values) {
  const std::uint64_t key = key_of(seed, name);
  with_type_of(spec.dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>)
      draw<T>(initializer, key, spec.shape, values);
    else if (spec.bytes() > 0)  // the others start at zero
      std::memset(values, 0, spec.bytes());
  });
}

void draw_initial_share(const Initializer& initializer, Seed seed, std::string_view name,
                        const Spec& whole, const distributed::World& world, void* values) {
  HostBytes all(whole.bytes(), "parameters", "initial values, of which a rank keeps its share");
  draw_initial_values(initializer, seed, name, whole, all.data());
  const auto own = share_in({all.data(), whole}, world.size(), world.rank());
  if (!own.empty()) std::memcpy(values, own.data(), own.size());
}

}  // namespace detail
}  // namespace ebb
