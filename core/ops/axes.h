#pragma once
#include "ebb/core/base/inline_vector.h"
#include "ebb/core/base/shape.h"

namespace ebb {

// Axes of a tensor, by number; a negative one counts from the end.
using Axes = InlineVector<int, kMaxRank>;

}  // namespace ebb
