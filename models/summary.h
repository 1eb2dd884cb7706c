#pragma once
#include <iosfwd>
#include <string>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

// A table of a model's contents, for people: a line for each parameter and state below this handle,
// with its name, shape, dtype, whether it is trained ("frozen": not for now, "state": never) and
// bytes; then the totals of numbers and bytes, and the total of the optimizers' slots. Works in
// both modes; ends in a line break.
//
//   std::cout << summary(params);
std::string summary(const Parameters& parameters);
// Writes summary(parameters) without the last line break.
std::ostream& operator<<(std::ostream& out, const Parameters& parameters);

}  // namespace ebb
