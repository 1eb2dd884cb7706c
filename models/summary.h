#pragma once
#include <iosfwd>
#include <string>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

// What a model is made of, for people: a line for each parameter below this handle, and for each
// state, with its name, shape, dtype, whether it is trained ("frozen": not for now, "state": never)
// and bytes; then how many numbers and bytes that is in all, and what optimizers keep beside them.
// In both modes; ends in a line break.
//
//   std::cout << summary(params);
std::string summary(const Parameters& parameters);
// The same without the last line break.
std::ostream& operator<<(std::ostream& out, const Parameters& parameters);

}  // namespace ebb
