#include "ebb/core/ops/update.h"

#include <vector>

#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using detail::output_like_first;
using detail::require_scalar;

constexpr OpDef update_op(const char* name, void (*infer)(Inference&), Kernel cpu, Kernel cuda,
                          Tensors (*gradient)(const GradientContext&) = nullptr,
                          bool overwrites = false) {
  return {.name = name,
          .infer = infer,
          .gradient = gradient,
          .updates = bit(0),
          .overwrites = overwrites,
          .stateful = true,
          .cpu = {cpu},
          .cuda = {cuda}};
}

void infer_assign(Inference& inference) {
  const Spec &target = inference.inputs[0], &value = inference.inputs[1];
  inference.require(value.dtype == target.dtype && detail::may_equal(value.shape, target.shape),
                    "takes tensors of one shape and dtype");
  output_like_first(inference);
}

void infer_add_assign(Inference& inference) {
  detail::require_arithmetic(inference);
  infer_assign(inference);
}

void infer_assign_if(Inference& inference) {
  require_scalar(inference, 2, DType::boolean, "`ready`");
  infer_assign(inference);
}

void infer_increment(Inference& inference) {
  require_scalar(inference, 0, DType::i64, "n");
  if (inference.attribute<CountAttributes>().gated)
    require_scalar(inference, 1, DType::boolean, "`ready`");
  output_like_first(inference);
}

void infer_add_count(Inference& inference) {
  require_scalar(inference, 0, DType::i64, "n");
  require_scalar(inference, 1, DType::i64, "rows");
  output_like_first(inference);
}

void infer_clear_if(Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  inference.require(is_floating(dtype) || dtype == DType::i64,
                    "clears f32, f64, f16, bf16 and i64");
  require_scalar(inference, 1, DType::boolean, "`ready`");
  output_like_first(inference);
}

Tensor write(const OpDef& op, const Operand& target, const Operand& value) {
  const detail::CalledScope called(op.name);
  const Tensor& written = detail::tensor_of(op, target);
  if (!value.is_number()) return apply_one(op, {target, value}, {}, target.site());
  const detail::HeldOperand held(target);
  const Tensor filled = fill_like({written, target.site()}, value.number());
  return apply_one(op, {*held, filled}, {}, target.site());
}

}  // namespace

Tensor assign(const Operand& target, const Operand& value) {
  return write(assign_op, target, value);
}

Tensor add_assign(const Operand& target, const Operand& value) {
  return write(add_assign_op, target, value);
}

namespace detail {

Tensor increment(const Tensor& n, std::int64_t value, const Tensor& ready, CallSite site) {
  const Input inputs[] = {n, ready};
  return apply_one(increment_op, {inputs, ready.defined() ? 2u : 1u},
                   CountAttributes{value, ready.defined()}, site);
}

Tensor add_count(const Tensor& n, const Tensor& rows, CallSite site) {
  return apply_one(add_count_op, {n, rows}, {}, site);
}

Tensor at_least(const Tensor& n, std::int64_t value, CallSite site) {
  return apply_one(at_least_op, {n}, CountAttributes{value}, site);
}

Tensor assign_if(const Tensor& target, const Tensor& value, const Tensor& ready, CallSite site) {
  return apply_one(assign_if_op, {target, value, ready}, {}, site);
}

Tensor clear_if(const Tensor& a, const Tensor& ready, CallSite site) {
  return apply_one(clear_if_op, {a, ready}, {}, site);
}

Tensor with_updates(const Tensor& loss, std::span<const Tensor> updates, CallSite site) {
  std::vector<Input> inputs{loss};
  inputs.insert(inputs.end(), updates.begin(), updates.end());
  return apply_one(with_updates_op, inputs, {}, site);
}

}  // namespace detail

constinit const OpDef assign_op = update_op(
    "assign", infer_assign, cpu::assign, cuda::assign,
    [](const GradientContext& g) -> Tensors {
      return {Tensor(), g.dy()};
    },
    true);
constinit const OpDef add_assign_op =
    update_op("add_assign", infer_add_assign, cpu::add_assign, cuda::add_assign,
              [](const GradientContext& g) -> Tensors {
                return {g.dy(), g.dy()};
              });
constinit const OpDef assign_if_op =
    update_op("assign_if", infer_assign_if, cpu::assign_if, cuda::assign_if);
constinit const OpDef increment_op =
    update_op("increment", infer_increment, cpu::increment, cuda::increment);
constinit const OpDef add_count_op =
    update_op("add_count", infer_add_count, cpu::add_count, cuda::add_count);
constinit const OpDef clear_if_op =
    update_op("clear_if", infer_clear_if, cpu::clear_if, cuda::clear_if);

constinit const OpDef at_least_op{.name = "at_least",
                                  .infer =
                                      [](Inference& inference) {
                                        require_scalar(inference, 0, DType::i64, "n");
                                        inference.output(DType::boolean, {});
                                      },
                                  .cpu = {cpu::at_least},
                                  .cuda = {cuda::at_least}};

constinit const OpDef with_updates_op{.name = "with_updates",
                                      .infer = output_like_first,
                                      .gradient = detail::passes_on,
                                      .shape_only = from(1),
                                      .stateful = true,
                                      .view = [](const MemoryQuery&) -> std::size_t { return 0; }};

}  // namespace ebb
