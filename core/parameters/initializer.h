#pragma once
#include <string>
#include <string_view>

#include "ebb/allocator/category.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/device/world.h"
#include "ebb/core/random/random.h"

namespace ebb {

// Initial values of a parameter. They are drawn on the host from the seed and the parameter's full
// name alone, so they do not depend on device, mode or the order of declarations.
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
// Normal, with values further than two deviations from the mean drawn again, as in TensorFlow. The
// deviation of the result is 0.8796 times the given one.
Initializer truncated_normal(double mean, double standard_deviation);

// The next six keep the variance of signals and gradients equal from layer to layer. Each output of
// a layer sums fan_in products, each input goes into fan_out. For Dense these are in and out; for a
// convolution, times the taps of the kernel.

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

// For two or more axes; axes from the second on count as one. Rows (or columns, if there are fewer
// of them) are orthogonal to each other with length `gain`, distributed evenly over all such
// matrices (Saxe, McClelland & Ganguli, ICLR 2014). Takes an f64 on the host for each value
// meanwhile, and rows columns min(rows, columns) steps.
Initializer orthogonal(double gain = 1);

// For the bias of an LSTM's gates i, f, g, o: uniform in [-bound, bound), plus 1 for the forget
// gate f (Jozefowicz, Zaremba & Sutskever, ICML 2015).
Initializer lstm_bias(double bound);
}  // namespace initializers

// A named value that outlives a step: a parameter, or an optimizer's slot (moments, counts). In
// eager mode Parameters hold its tensor. In a graph it is a declaration, and each session has a
// value.
struct VariableDeclaration {
  std::string name;
  Spec spec;
  Initializer initializer;
  Seed seed;
  memory::Category category = memory::Category::parameter;
  CallSite site;
  std::optional<distributed::World> world = {};  // whose ranks all have it
  std::optional<Shape> whole = {};               // of which they have shares
};

namespace detail {
// Writes spec.bytes() of initial values (floating, or zeros of any dtype) to `values`.
void draw_initial_values(const Initializer& initializer, Seed seed, std::string_view name,
                         const Spec& spec, void* values);
// Likewise of this rank's share of the values.
void draw_initial_share(const Initializer& initializer, Seed seed, std::string_view name,
                        const Spec& whole, const distributed::World& world, void* values);
}  // namespace detail

}  // namespace ebb
