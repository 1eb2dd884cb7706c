// Creation of tensors: filled, from the host, and from another device.
#include "ebb/core/ops/create.h"

#include "ebb/core/base/called.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

using detail::message;

namespace {

// FillAttributes, which the kernel reads, then the dtype and shape of the result.
struct FullAttributes {
  FillAttributes fill;
  std::int64_t dims[kMaxRank] = {};
  std::int32_t rank = 0;
  std::int32_t dtype = 0;
};

}  // namespace

Tensor Tensor::full(Shape shape, double value, DType dtype, const Device& device, CallSite site) {
  if (shape.is_open())
    throw ShapeError(message("full", "the shape " + shape.to_string() + " is open", site));
  FullAttributes attributes{.fill = {value}};
  attributes.rank = shape.rank();
  attributes.dtype = static_cast<std::int32_t>(dtype);
  for (int i = 0; i < shape.rank(); ++i) attributes.dims[i] = shape[i];
  return std::move(apply_on(device, full_op, attributes, site)[0]);
}

Tensor Tensor::zeros(Shape shape, DType dtype, const Device& device, CallSite site) {
  const detail::CalledScope called("zeros");
  return full(shape, 0, dtype, device, site);
}

Tensor Tensor::clone(CallSite site) const {
  if (!defined()) throw Error(message("clone", "takes a tensor, not " + to_string(), site));
  const detail::CalledScope called("clone");
  return copy({*this, site});
}

Tensor Tensor::to(const Device& device, CallSite site) const {
  if (!defined() || !impl_->storage)
    throw Error(message("to", "takes a concrete tensor, not " + to_string(), site));
  const Device here = this->device();
  if (here == device) return *this;
  if (here.is_simulated() && !device.is_simulated())
    throw SimulatedRead(message(
        "to", "a tensor on " + here.name() + " has no values to copy to " + device.name(), site));
  const Input input(*this);
  return std::move(detail::run_now(to_op, {&input, 1}, {}, site, {}, &device)[0]);
}

constinit const OpDef full_op{.name = "full",
                              .infer =
                                  [](Inference& inference) {
                                    const auto& a = inference.attribute<FullAttributes>();
                                    inference.output(
                                        static_cast<DType>(a.dtype),
                                        Shape(std::span(a.dims, static_cast<std::size_t>(a.rank))));
                                  },
                              .cpu = {cpu::fill},
                              .cuda = {cuda::fill}};

constinit const OpDef to_op{
    .name = "to",
    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
    .gradient = [](const GradientContext& g) -> Tensors {
      return {g.dy().to(*g.node().extra->device)};
    },
    .moves = true};

}  // namespace ebb
