#include "ebb/core/ops/copy.h"

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

struct CastAttributes {
  std::int64_t dtype = 0;
};

void infer_cast(Inference& inference) {
  const auto to = static_cast<DType>(inference.attribute<CastAttributes>().dtype);
  inference.output(to, inference.inputs[0].shape);
}

}  // namespace

Tensor copy(const Operand& x) { return detail::apply_to(copy_op, x); }

Tensor cast(const Operand& x, DType dtype) {
  const Tensor& tensor = detail::tensor_of(cast_op, x);
  if (tensor.dtype() == dtype) return x.take();
  return detail::apply_to(cast_op, x, CastAttributes{static_cast<std::int64_t>(dtype)});
}

constinit const OpDef copy_op{.name = "copy",
                              .infer = detail::output_like_first,
                              .gradient = detail::passes_on,
                              .takes_over = bit(0),
                              .cpu = {cpu::copy},
                              .cuda = {cuda::copy}};

constinit const OpDef cast_op{.name = "cast",
                              .infer = infer_cast,
                              .gradient = [](const GradientContext& g) -> Tensors {
                                const DType from = g.x(0).dtype();
                                const bool flows =
                                    is_floating(from) && is_floating(g.node().outputs[0].dtype);
                                return {flows ? cast(g.take_dy(), from) : Tensor()};
                              },
                              .pointwise = true,
                              .cpu = {cpu::cast},
                              .cuda = {cuda::cast}};

constinit const OpDef detach_op{.name = "detach",
                                .infer = detail::output_like_first,
                                .gradient = detail::no_gradient,
                                .stops_gradient = bit(0),
                                .view = [](const MemoryQuery&) -> std::size_t { return 0; }};

constinit const OpDef move_out_op{
    .name = "move_out", .infer = nullptr, .stateful = true, .cuda = {cuda::begin_host_copy}};
constinit const OpDef move_in_op{
    .name = "move_in", .infer = nullptr, .stateful = true, .cuda = {cuda::begin_host_copy}};
constinit const OpDef moved_op{
    .name = "moved", .infer = nullptr, .stateful = true, .cuda = {cuda::end_host_copy}};

}  // namespace ebb
