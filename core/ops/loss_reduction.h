#pragma once
#include <cstdint>

#include "ebb/core/ops/reduce.h"

namespace ebb {

// The reduction of the losses of all elements or rows to a result.
enum class LossReduction : std::uint8_t { mean, sum, none };

namespace detail {
Tensor reduce_losses(const Operand& losses, LossReduction reduction);
}

}  // namespace ebb
