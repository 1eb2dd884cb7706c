#pragma once
#include <functional>
#include <iosfwd>
#include <string>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct GradientCheckOptions {
  double tolerance = 1e-6;  // bound on |computed - numeric| / max(1, |computed|, |numeric|)
  double step = 1e-5;       // of the central difference, times max(1, |x|)
  int order = 1;            // 2: the gradient of the gradient is checked as well
  int directions = 0;       // n: along n random directions of each input; 0: element by element
};

struct GradientCheck {
  bool agrees = true;
  double worst = 0;    // the largest difference, scaled as for the tolerance
  std::string report;  // "" or where the worst element is, with both values

  explicit operator bool() const noexcept { return agrees; }
};

// "agrees to 3e-10", or "differs by 0.5, input 0, element 1: computed 2, numeric 3".
std::ostream& operator<<(std::ostream& out, const GradientCheck& check);

// Compares the gradient of `function` by reverse mode with central differences, for every element
// of every input. With options.directions it takes two calls a direction, and is less likely to see
// an error in one of many elements. Inputs are f64 on the CPU, away from points where the function
// is not smooth. A result of several elements is reduced with fixed random weights. Throws Error
// for an input of another dtype and for options out of range, NotDifferentiable.
GradientCheck check_gradient(const std::function<Tensor(const Tensors&)>& function,
                             const Tensors& inputs, const GradientCheckOptions& options = {},
                             CallSite site = CallSite::here());

}  // namespace ebb
