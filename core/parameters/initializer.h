#pragma once
#include <cstddef>
#include <string_view>

#include "ebb/core/base/shape.h"
#include "ebb/core/random/random.h"

namespace ebb {

// How a parameter starts. Values are drawn on the host from the seed and the parameter's full name
// alone, so they do not depend on device, mode or the order of declarations.
struct Initializer {
  enum Kind { constant, uniform, normal };
  Kind kind = constant;
  double a = 0;               // constant: the value; uniform: low; normal: mean
  double b = 0;               // uniform: high; normal: standard deviation
  double second_quarter = 0;  // added to the second quarter of the values
};

namespace initializers {
Initializer zeros();
Initializer constant(double value);
Initializer uniform(double low, double high);
Initializer normal(double mean, double standard_deviation);
// Uniform in +-sqrt(6 / (fan_in + fan_out)): Glorot & Bengio, AISTATS 2010.
Initializer glorot_uniform(std::int64_t fan_in, std::int64_t fan_out);
// For the bias of an LSTM's gates i, f, g, o: uniform in [-bound, bound), and 1 more for the forget
// gate f (Jozefowicz, Zaremba & Sutskever, ICML 2015).
Initializer lstm_bias(double bound);
// Normal with deviation sqrt(2 / fan_in): He et al., ICCV 2015.
Initializer he_normal(std::int64_t fan_in);
}  // namespace initializers

namespace detail {
// Writes spec.bytes() of initial values (floating, or zeros of any dtype) to `values`.
void draw_initial_values(const Initializer& initializer, Seed seed, std::string_view name,
                         const Spec& spec, void* values);
}  // namespace detail

}  // namespace ebb
