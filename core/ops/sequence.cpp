#include "ebb/core/ops/sequence.h"

#include "ebb/core/kernels/sequence.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

void infer_reverse_sequence(Inference& inference) {
  const Spec &x = inference.inputs[0], &lengths = inference.inputs[1];
  inference.require(x.shape.rank() >= 2, "takes x [batch, time, ...]");
  inference.require(
      lengths.dtype == DType::i64 && detail::may_equal(lengths.shape, {x.shape.dim(0)}),
      "the lengths must be integers [batch]");
  inference.output(x.dtype, x.shape);
}

}  // namespace

Tensor reverse_sequence(const Operand& x, const Operand& lengths) {
  const OpDef& op = reverse_sequence_op;
  const detail::CalledScope called(op.name);
  const bool is_short = detail::tensor_of(op, lengths).dtype() == DType::i32;
  return is_short ? detail::apply_to(op, {x, cast(lengths, DType::i64)})
                  : detail::apply_to(op, {x, lengths});
}

constinit const OpDef reverse_sequence_op{.name = "reverse_sequence",
                                          .infer = infer_reverse_sequence,
                                          .gradient = detail::gradient_by<reverse_sequence_op, 1>,
                                          .keeps = input(1),
                                          .cpu = {cpu::reverse_sequence},
                                          .cuda = {cuda::reverse_sequence}};

}  // namespace ebb
