// What index_add and scatter_add share: functions with a shape rule of their own.
#pragma once
#include "ebb/core/ops/shape_rules.h"

namespace ebb::detail {

// Runs the rule of what is a public function but no operator: `function` is but a name, so that
// errors name what was called and not what it applies.
inline void check(const OpDef& function, void (*rule)(Inference&),
                  std::span<const Operand* const> operands, const Attributes& attributes,
                  CallSite site) {
  Specs inputs, outputs;
  for (const Operand* operand : operands) {
    const Tensor& tensor = tensor_of(function, *operand);
    inputs.push_back({tensor.dtype(), tensor.shape()});
  }
  Inference inference{function, {inputs.data(), inputs.size()}, attributes, site, outputs};
  rule(inference);
}

}  // namespace ebb::detail
