#pragma once
#include "ebb/core/parameters/initializer.h"

namespace ebb::tests {

inline const Initializer kUniform = initializers::uniform(-1, 1);

}  // namespace ebb::tests
