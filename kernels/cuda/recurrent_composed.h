// The form that is composed of products and a cell kernel for each step.
#pragma once
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/recurrent_call.h"
#include "ebb/kernels/cuda/recurrent_form.h"

namespace ebb::cuda {

// Direction<T>(context, products).run() computes it.
template <template <class> class Direction>
class ComposedRecurrent final : public RecurrentForm {
 public:
  PreparedProducts of;

  std::size_t bytes() const noexcept override { return sizeof(*this) - sizeof(of) + of.bytes(); }
  const char* way() const noexcept override { return "composed of products"; }
  Status run(const KernelContext& context) const noexcept override {
    const DType dtype = context.inputs.back().spec.dtype;  // the first is not of it in backward
    return for_floating(dtype,
                        [&]<class T>(T) { return Direction<T>(context, of.products).run(); });
  }
};

}  // namespace ebb::cuda
