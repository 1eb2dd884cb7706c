#pragma once
#include <cstddef>
#include <string_view>

#include "ebb/core/base/shape.h"
#include "ebb/core/random/random.h"

namespace ebb {

// How a parameter starts. Values are drawn on the host from the seed and the parameter's full name
// alone, so they do not depend on device, mode or the order of declarations.
struct Initializer {
  enum Kind { constant, uniform, normal, truncated_normal, orthogonal };
  Kind kind = constant;
  double a = 0;               // constant: the value; uniform: low; normals: mean; orthogonal: gain
  double b = 0;               // uniform: high; normals: standard deviation
  double second_quarter = 0;  // added to the second quarter of the values
};

namespace initializers {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer uniform(double low, double high);
Initializer normal(double mean, double standard_deviation);
// The same with what is further than two deviations from the mean drawn again, as TensorFlow's; the
// deviation of what is left is 0.8796 times the one given.
Initializer truncated_normal(double mean, double standard_deviation);

// What keeps the variance of signals and gradients the same from layer to layer. An element of a
// layer's output adds up fan_in products, one of its input goes into fan_out: in and out of a
// Dense, times the kernel's taps for a convolution.

// Glorot & Bengio, AISTATS 2010 ("Xavier"): uniform in +-sqrt(6 / (fan_in + fan_out)), or normal
// with deviation sqrt(2 / (fan_in + fan_out)).
Initializer glorot_uniform(std::int64_t fan_in, std::int64_t fan_out);
Initializer glorot_normal(std::int64_t fan_in, std::int64_t fan_out);
// He et al., ICCV 2015 ("Kaiming"), for layers before a relu: uniform in +-sqrt(6 / fan_in), or
// normal with deviation sqrt(2 / fan_in).
Initializer he_uniform(std::int64_t fan_in);
Initializer he_normal(std::int64_t fan_in);
// LeCun et al., "Efficient BackProp", 1998: uniform in +-sqrt(3 / fan_in), or normal with deviation
// sqrt(1 / fan_in).
Initializer lecun_uniform(std::int64_t fan_in);
Initializer lecun_normal(std::int64_t fan_in);

// Of two axes or more, all but the first taken as one: rows, or where there are fewer of
// them columns, that are orthogonal to each other and as long as `gain`, evenly distributed over
// all such matrices (Saxe, McClelland & Ganguli, ICLR 2014). Takes f64 for each value on the host
// meanwhile, and rows columns min(rows, columns) steps.
Initializer orthogonal(double gain = 1);

// For the bias of an LSTM's gates i, f, g, o: uniform in [-bound, bound), and 1 more for the forget
// gate f (Jozefowicz, Zaremba & Sutskever, ICML 2015).
Initializer lstm_bias(double bound);
}  // namespace initializers

namespace detail {
// Writes spec.bytes() of initial values (floating, or zeros of any dtype) to `values`.
void draw_initial_values(const Initializer& initializer, Seed seed, std::string_view name,
                         const Spec& spec, void* values);
}  // namespace detail

}  // namespace ebb
