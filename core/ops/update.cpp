#include "ebb/core/ops/update.h"

#include <cmath>
#include <vector>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/index_check.h"

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

void infer_assign_slice(Inference& inference) {
  const Spec &x = inference.inputs[0], &value = inference.inputs[1];
  const auto& part = inference.attribute<AssignSliceAttributes>();
  const int axis = detail::require_axis(inference, x.shape, part.axis);
  inference.require(value.shape.rank() == x.shape.rank(),
                    "takes a value with all axes of x: unsqueeze(value, axis)");
  Shape like = x.shape;
  like.set(axis, value.shape.dim(axis));
  inference.require(value.dtype == x.dtype && detail::may_equal(value.shape, like),
                    "takes a value of x's dtype, and of its sizes but along the axis");
  // An open axis may be as long as any, an open value empty.
  const std::int64_t size = x.shape.dim(axis) == kOpen ? kMaxElements : x.shape.dim(axis);
  const std::int64_t count = value.shape.dim(axis) == kOpen ? 0 : value.shape.dim(axis);
  const std::int64_t first = part.begin < 0 ? part.begin + size : part.begin;
  if (first < 0 || first > size - count)
    inference.fail("the value does not fit into axis " + std::to_string(axis) + " at " +
                   std::to_string(part.begin));
  output_like_first(inference);
}

void infer_assign_slice_at(Inference& inference) {
  require_scalar(inference, 2, DType::i64, "`begin`");
  infer_assign_slice(inference);
}

// The gradients of a value written into x from `begin` on, an i64 scalar from the front. `part` is
// the part of dy, not defined() where no slice gives it.
Tensors gradients_of_part(const GradientContext& g, const Tensor& begin, const Tensor& part = {}) {
  const auto axis = static_cast<int>(g.attribute<AssignSliceAttributes>().axis);
  const Tensor value = g.x(1);  // its shape
  const auto zeros = [&] { return expand_as(cast(fill_like(begin, 0), value.dtype()), value); };
  Tensors all(static_cast<std::size_t>(g.inputs()));
  all[1] = part;
  if (g.wants(1) && !part.defined()) {
    Axes others;
    for (int i = 0; i < value.rank(); ++i)
      if (i != axis) others.push_back(i);
    // A number for each index of the part, as many as there are in a run.
    const Tensor each = cast(others.empty() ? zeros() : sum(zeros(), {.axes = others}), DType::i64);
    const Tensor places = cumsum(fill_like(each, 1), 0, {.exclusive = true}) + begin;
    all[1] = index_select(g.dy(), places, axis);
  }
  if (g.wants(0)) all[0] = assign_slice(copy(g.take_dy()), begin, zeros(), {.axis = axis});
  return all;
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

Tensor assign_slice(const Operand& x, const Operand& begin, const Operand& value,
                    const AssignSliceOptions& options) {
  AssignSliceAttributes part{detail::axis_of(assign_slice_op, options.axis, x)};
  if (!begin.is_number()) return detail::apply_to(assign_slice_at_op, {x, value, begin}, part);
  const double at = begin.number();
  if (!(std::abs(at) <= static_cast<double>(kMaxElements)) || at != std::trunc(at))
    detail::fail(assign_slice_op, "begins at an index, not at " + std::to_string(at), x);
  part.begin = static_cast<std::int64_t>(at);
  return detail::apply_to(assign_slice_op, {x, value}, part);
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
constinit const OpDef assign_slice_op = update_op(
    "assign_slice", infer_assign_slice, cpu::assign_slice, cuda::assign_slice,
    [](const GradientContext& g) {
      const std::int64_t begin = g.attribute<AssignSliceAttributes>().begin;
      const int axis = static_cast<int>(g.attribute<AssignSliceAttributes>().axis);
      const std::int64_t count = g.x(1).shape().dim(axis), end = begin + count;
      const Tensor size = ebb::size(g.dy(), axis);
      Tensor part;
      if (g.wants(1) && count != kOpen)
        part = slice(g.dy(), begin, begin < 0 && end == 0 ? kEnd : end, {.axis = axis});
      return gradients_of_part(
          g, begin < 0 ? size + begin : fill_like(size, static_cast<double>(begin)), part);
    });
constinit const OpDef assign_slice_at_op = [] {
  OpDef op =
      update_op("assign_slice", infer_assign_slice_at, cpu::assign_slice_at, cuda::assign_slice_at,
                [](const GradientContext& g) { return gradients_of_part(g, g.x(2)); });
  op.keeps = input(2);
  op.indices = [](const KernelContext& context) {
    const auto axis = static_cast<int>(context.attribute<AssignSliceAttributes>().axis);
    const auto along = [&](std::size_t i) { return context.inputs[i].spec.shape.dim(axis); };
    return IndexRange{.input = 2, .size = along(0), .taken = along(1)};
  };
  return op;
}();
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
