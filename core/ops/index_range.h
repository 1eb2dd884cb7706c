// Shared by the operators that choose by index.
#pragma once
#include "ebb/core/base/called.h"
#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/core/tensor/index_check.h"

namespace ebb::detail {

inline IndexAttributes index_attributes(const OpDef& op, std::int64_t axis,
                                        const IndexOptions& options) {
  return {.axis = axis,
          .check_labels = options.check_labels,
          .function = called() ? called() : op.name};
}

// The range of the indices, input 1, that choose along an axis of this input.
template <std::size_t kChosenFrom>
IndexRange indices_into(const KernelContext& context) {
  const auto& attributes = context.attribute<IndexAttributes>();
  return {.size = context.inputs[kChosenFrom].spec.shape.dim(static_cast<int>(attributes.axis)),
          .check_labels = attributes.check_labels != 0,
          .function = attributes.function};
}

// Added at an index out of range, on a GPU, a value counts for nothing and has no gradient.
inline IndexAttributes of_what_is_added(const GradientContext& g) {
  IndexAttributes attributes = g.attribute<IndexAttributes>();
  attributes.zero_outside = 1;
  return attributes;
}

}  // namespace ebb::detail
