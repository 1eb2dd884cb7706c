#include <limits>

#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

void infer_pad(Inference& inference) {
  const auto& attributes = inference.attribute<PadAttributes>();
  const Spec& x = inference.inputs[0];
  inference.require(attributes.rank == static_cast<std::uint64_t>(x.shape.rank()),
                    "takes a padding for each axis");
  Shape out = x.shape;
  for (int i = 0; i < out.rank(); ++i)
    if (out.dim(i) != kOpen)
      out.set(i, out.dim(i) + attributes.before[i] + std::int64_t{attributes.after[i]});
  inference.output(x.dtype, out);
}

Tensors pad_gradient(const GradientContext& g) {
  const auto& attributes = g.attribute<PadAttributes>();
  Tensor dx = g.dy();
  for (std::size_t i = 0; i < attributes.rank; ++i) {
    const std::int64_t before = attributes.before[i], after = attributes.after[i];
    if (before + after > 0)
      dx = slice({dx, g.site()}, before, after > 0 ? -after : kEnd, {.axis = static_cast<int>(i)});
  }
  return {dx};
}

}  // namespace

Tensor pad(const Operand& x, const InlineVector<Padding, kMaxRank>& axes, double value) {
  const Tensor& tensor = detail::tensor_of(pad_op, x);
  if (axes.size() != static_cast<std::size_t>(tensor.rank()))
    detail::fail(pad_op, "takes a padding for each axis, not " + std::to_string(axes.size()),
                 tensor, x.site());
  PadAttributes attributes{.rank = axes.size(), .value = value};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const auto [before, after] = axes[i];
    if (std::min(before, after) < 0 || std::max(before, after) > kMost)
      detail::fail(
          pad_op,
          "takes no padding of {" + std::to_string(before) + ", " + std::to_string(after) + "}",
          tensor, x.site());
    attributes.before[i] = static_cast<std::uint32_t>(before);
    attributes.after[i] = static_cast<std::uint32_t>(after);
  }
  return detail::apply_to(pad_op, x, attributes);
}

constinit const OpDef pad_op{.name = "pad",
                             .infer = infer_pad,
                             .gradient = pad_gradient,
                             .is_identity = detail::keeps_shape,
                             .cpu = {cpu::pad},
                             .cuda = {cuda::pad}};

}  // namespace ebb
