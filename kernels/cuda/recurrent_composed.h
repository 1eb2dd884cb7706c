// The form that is composed of products and a cell kernel for each step.
#pragma once
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/recurrent_form.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {

// Prepares the products of these shapes. Direction<T>(context, products).run() computes it.
template <template <class> class Direction>
class ComposedRecurrent final : public RecurrentForm {
 public:
  ComposedRecurrent(std::span<const ProductShape> shapes, const MemoryQuery& query) {
    of_.products.reserve(shapes.size());
    for (const ProductShape& shape : shapes)
      of_.products.emplace_back(shape, Epilogue::none, query);
  }

  std::size_t bytes() const noexcept override { return sizeof(*this) - sizeof(of_) + of_.bytes(); }
  const char* way() const noexcept override { return "composed of products"; }
  Status run(const KernelContext& context) const noexcept override {
    const DType dtype = context.inputs.back().spec.dtype;  // the first is not of it in backward
    return for_floating(dtype,
                        [&]<class T>(T) { return Direction<T>(context, of_.products).run(); });
  }

 private:
  PreparedProducts of_;
};

}  // namespace ebb::cuda
