#include "ebb/core/kernels/functors/powers.h"

#include <cmath>
#include <limits>

#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/powers.h"
#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/one_by_one.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {

EBB_ONE_BY_ONE(log2, log2)
EBB_ONE_BY_ONE(log10, log10)
EBB_ONE_BY_ONE(exp2, exp2)
EBB_ONE_BY_ONE(pow, pow)

#include "ebb/core/kernels/functors/powers.inc"

namespace {

struct Cube : functors::Exact {
  auto operator()(const auto& x) const { return x * x * x; }
};
struct Reciprocal : functors::Exact {
  auto operator()(const auto& x) const { return 1 / x; }
};
// C's pow: of -0 it is 0, and of -infinity infinity.
struct Root : functors::Exact {
  auto operator()(const auto& x) const {
    return x < -std::numeric_limits<decltype(x + 0)>::max() ? -x : std::sqrt(x + 0);
  }
};

}  // namespace

Status pow_number(const KernelContext& context) {
  const double number = context.attribute<NumberOperand>().value;
  if (number == 1) return copy(context);
  if (number == 2) return map<functors::Square>(context);
  if (number == 3) return map<Cube>(context);
  if (number == 0.5) return map<Root>(context);
  if (number == -1) return map<Reciprocal>(context);
  return zip<functors::Power>(context);
}

}  // namespace ebb::cpu
