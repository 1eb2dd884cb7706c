#include "ebb/core/ops/reduce.h"

#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

Tensor reduce(const OpDef& op, const Operand& x, const ReduceOptions& options, bool mean) {
  const std::uint32_t axes = detail::mask_of(op, detail::asked_axes(op, options, x), x);
  const Reduction how{.axes = axes, .keep = options.keep, .mean = mean};
  if (!mean || x.tensor().dtype() != DType::boolean) return detail::apply_to(op, x, how);
  const detail::CalledScope called(op.name);
  const CallSite site = x.site();
  return detail::apply_to(op, {cast(x, DType::f32), site}, how);
}

void infer_reduce(Inference& inference) {
  detail::require_arithmetic(inference);
  detail::output_reduced<Reduction>(inference, inference.inputs[0].dtype);
}

void infer_sum(Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  detail::output_reduced<Reduction>(inference, is_floating(dtype) ? dtype : DType::i64);
}

void infer_logic(Inference& inference) {
  inference.require(inference.inputs[0].dtype == DType::boolean,
                    "takes bool (a comparison gives it: x != 0)");
  detail::output_reduced<Reduction>(inference, DType::boolean);
}

bool is_sum_of_one(const MemoryQuery& query) { return query.inputs[0] == query.outputs[0]; }

Tensors reduce_gradient(Gradient g) {
  return {detail::broadcast_like(g.dy(), g.x(0), g.attribute<Reduction>())};
}

// Whether all reduced axes are of size 1, and a mean divides by 1 (no correction).
bool reduces_nothing(const MemoryQuery& query) {
  return detail::keeps_shape(query) && query.attribute<Reduction>().correction == 0;
}

// Output 0 has the shape of input 1, whose dtype does not matter.
void infer_sum_like(Inference& inference) {
  detail::require_arithmetic(inference, 1);
  const Spec &x = inference.inputs[0], &like = inference.inputs[1];
  inference.require(detail::broadcasts_to(like.shape, x.shape),
                    "the second shape does not broadcast to the first");
  inference.output(x.dtype, like.shape);
}
void infer_expand_as(Inference& inference) {
  const Spec &x = inference.inputs[0], &like = inference.inputs[1];
  inference.require(detail::broadcasts_to(x.shape, like.shape),
                    "the first shape does not broadcast to the second");
  inference.output(x.dtype, like.shape);
}

void infer_broadcast_like(Inference& inference) {
  detail::require_arithmetic(inference, 1);
  const Shape& like = inference.inputs[1].shape;
  const auto& how = inference.attribute<Reduction>();
  inference.require(
      detail::may_equal(inference.inputs[0].shape, detail::reduced(like, how.axes, how.keep != 0)),
      "the first shape is not the second one reduced");
  inference.output(inference.inputs[0].dtype, like);
}

// x itself where its shape is known to be that of `like`.
Tensor apply_like(const OpDef& op, const Operand& x, const Operand& like) {
  const Shape& shape = detail::tensor_of(op, x).shape();
  if (shape == detail::tensor_of(op, like).shape() && !shape.is_open()) return x.take();
  return apply_one(op, {x, like}, {}, x.site());
}

constexpr OpDef logic(const char* name, Kernel cpu, Kernel cuda) {
  return {.name = name,
          .infer = infer_logic,
          .gradient = detail::no_gradient,
          .is_identity = detail::keeps_shape,
          .cpu = {cpu},
          .cuda = {cuda, cuda::sum_memory}};
}

}  // namespace

Tensor sum(const Operand& x, const ReduceOptions& options) {
  return reduce(sum_op, x, options, false);
}
Tensor mean(const Operand& x, const ReduceOptions& options) {
  return reduce(mean_op, x, options, true);
}

Tensor any(const Operand& x, const ReduceOptions& options) {
  return reduce(any_op, x, options, false);
}
Tensor all(const Operand& x, const ReduceOptions& options) {
  return reduce(all_op, x, options, false);
}

Tensor sum_like(const Operand& x, const Operand& like) { return apply_like(sum_like_op, x, like); }
Tensor expand_as(const Operand& x, const Operand& like) {
  return apply_like(expand_as_op, x, like);
}

Tensor detail::broadcast_like(const Operand& dy, const Operand& like, const Reduction& reduction) {
  return apply_to(broadcast_like_op, {dy, like}, reduction);
}

constinit const OpDef sum_op{.name = "sum",
                             .infer = infer_sum,
                             .gradient = reduce_gradient,
                             .is_identity = is_sum_of_one,
                             .cpu = cpu::in_float<cpu::sum, cpu::sum_memory>,
                             .cuda = {cuda::sum, cuda::sum_memory}};

constinit const OpDef mean_op{.name = "mean",
                              .infer = infer_reduce,
                              .gradient = reduce_gradient,
                              .is_identity = reduces_nothing,
                              .cpu = cpu::in_float<cpu::sum, cpu::sum_memory>,
                              .cuda = {cuda::sum, cuda::sum_memory}};

constinit const OpDef any_op = logic("any", cpu::any, cuda::any);
constinit const OpDef all_op = logic("all", cpu::all, cuda::all);

constinit const OpDef sum_like_op{
    .name = "sum_like",
    .infer = infer_sum_like,
    .gradient = detail::gradient_by<expand_as_op, 0>,
    .shape_only = bit(1),
    .is_identity = detail::keeps_shape,
    .cpu = cpu::in_float<cpu::sum_like, cpu::sum_like_memory, cpu::is_input<1>>,
    .cuda = {cuda::sum_like, cuda::sum_like_memory}};

constinit const OpDef broadcast_like_op{
    .name = "broadcast_like",
    .infer = infer_broadcast_like,
    .gradient = [](Gradient g) -> Tensors {
      const auto& reduction = g.attribute<Reduction>();
      const Tensor& dy = g.dy();
      return {apply_one(reduction.mean ? mean_op : sum_op, {dy}, reduction, g.site()), {}};
    },
    .shape_only = bit(1),
    .is_identity = reduces_nothing,
    .cpu = {cpu::broadcast_like},
    .cuda = {cuda::broadcast_like}};

constinit const OpDef expand_as_op{.name = "expand_as",
                                   .infer = infer_expand_as,
                                   .gradient = detail::gradient_by<sum_like_op, 0>,
                                   .shape_only = bit(1),
                                   .selects = true,
                                   .is_identity = detail::keeps_shape,
                                   .cpu = {cpu::broadcast},
                                   .cuda = {cuda::broadcast}};

}  // namespace ebb
