#include "ebb/core/ops/update.h"

#include <iterator>
#include <vector>

#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using detail::is_scalar;

void output_first(Inference& inference) {
  inference.output(inference.inputs[0].dtype, inference.inputs[0].shape);
}

// Inputs [1, count) must be like the first.
void require_equal(const Inference& inference, std::size_t count) {
  for (std::size_t i = 1; i < count; ++i) {
    const Spec& first = inference.inputs[0];
    const Spec& other = inference.inputs[i];
    inference.require(other.dtype == first.dtype && detail::may_equal(other.shape, first.shape),
                      "takes tensors of one shape and dtype");
  }
}

void require_scalar(const Inference& inference, std::size_t i, DType dtype, const char* what) {
  if (!is_scalar(inference.inputs[i], dtype))
    inference.fail(std::string(what) + " must be an " + name(dtype) + " scalar");
}

// The two inputs at the end of a gated update.
void require_gate(const Inference& inference, bool gated) {
  if (!gated) return;
  const std::size_t count = inference.inputs.size();
  inference.require(is_scalar(inference.inputs[count - 2], DType::boolean),
                    "`ready` must be a bool scalar");
  require_scalar(inference, count - 1, DType::i64, "`count`");
}

void infer_assign(Inference& inference) {
  require_equal(inference, 2);
  output_first(inference);
}

void infer_add_assign(Inference& inference) {
  detail::require_arithmetic(inference);
  infer_assign(inference);
}

void infer_assign_if(Inference& inference) {
  inference.require(is_scalar(inference.inputs[2], DType::boolean),
                    "`ready` must be a bool scalar");
  infer_assign(inference);
}

// Inputs p, (velocity)?, g, rate, gate.
template <std::size_t Arrays>
void infer_sgd(Inference& inference) {
  detail::require_arithmetic(inference, Arrays);
  require_equal(inference, Arrays);
  require_scalar(inference, Arrays, DType::f64, "the rate");
  require_gate(inference, inference.attribute<SgdAttributes>().gated);
  output_first(inference);
}

void infer_adam(Inference& inference) {
  detail::require_arithmetic(inference, 4);
  require_equal(inference, 4);
  require_scalar(inference, 4, DType::i64, "the step");
  require_scalar(inference, 5, DType::f64, "the rate");
  require_gate(inference, inference.attribute<AdamAttributes>().gated);
  output_first(inference);
}

void infer_increment(Inference& inference) {
  require_scalar(inference, 0, DType::i64, "n");
  if (inference.attribute<CountAttributes>().gated)
    inference.require(is_scalar(inference.inputs[1], DType::boolean),
                      "`ready` must be a bool scalar");
  output_first(inference);
}

void infer_accumulate(Inference& inference) {
  detail::require_arithmetic(inference, 2);
  require_equal(inference, 2);
  require_scalar(inference, 2, DType::i64, "rows");
  output_first(inference);
}

template <std::size_t N>
Tensor update(const OpDef& op, const Tensor (&values)[N], const Attributes& attributes,
              const detail::Gate& gate, CallSite site) {
  InlineVector<Input, 8> inputs(std::begin(values), std::end(values));
  if (gate.ready.defined()) {
    inputs.push_back(gate.ready);
    if (gate.count.defined()) inputs.push_back(gate.count);
  }
  return std::move(apply(op, {inputs.data(), inputs.size()}, attributes, site)[0]);
}

Tensor write(const OpDef& op, const Operand& target, const Operand& value) {
  const Tensor& written = detail::tensor_of(op, target);
  if (!value.is_number()) return apply_one(op, {written, value}, {}, target.site());
  const Tensor filled = fill_like({written, target.site()}, value.number());
  return apply_one(op, {written, filled}, {}, target.site());
}

}  // namespace

Tensor assign(const Operand& target, const Operand& value) {
  return write(assign_op, target, value);
}

Tensor add_assign(const Operand& target, const Operand& value) {
  return write(add_assign_op, target, value);
}

namespace detail {

Tensor sgd_update(const Tensor& p, const Tensor& velocity, const Tensor& g, const Tensor& rate,
                  SgdAttributes attributes, const Gate& gate, CallSite site) {
  attributes.gated = gate.ready.defined();
  if (attributes.momentum > 0)
    return update(sgd_momentum_update_op, {p, velocity, g, rate}, attributes, gate, site);
  return update(sgd_update_op, {p, g, rate}, attributes, gate, site);
}

Tensor adam_update(const Tensor& p, const Tensor& m, const Tensor& v, const Tensor& g,
                   const Tensor& step, const Tensor& rate, AdamAttributes attributes,
                   const Gate& gate, CallSite site) {
  attributes.gated = gate.ready.defined();
  return update(adam_update_op, {p, m, v, g, step, rate}, attributes, gate, site);
}

Tensor schedule(const Tensor& step, const ScheduleAttributes& attributes, CallSite site) {
  return apply_one(schedule_op, {step}, attributes, site);
}

Tensor increment(const Tensor& n, std::int64_t value, const Tensor& ready, CallSite site) {
  return update(increment_op, {n}, CountAttributes{value, ready.defined()}, {.ready = ready}, site);
}

Tensor add_count(const Tensor& n, const Tensor& rows, CallSite site) {
  return apply_one(add_count_op, {n, rows}, {}, site);
}

Tensor at_least(const Tensor& n, std::int64_t value, CallSite site) {
  return apply_one(at_least_op, {n}, CountAttributes{value}, site);
}

Tensor accumulate(const Tensor& sum, const Tensor& g, const Tensor& rows, CallSite site) {
  return apply_one(accumulate_op, {sum, g, rows}, {}, site);
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
  return std::move(apply(with_updates_op, inputs, {}, site)[0]);
}

}  // namespace detail

constinit const OpDef assign_op{.name = "assign",
                                .infer = infer_assign,
                                .gradient = [](const GradientContext& g) -> Tensors {
                                  return {Tensor(), g.dy()};
                                },
                                .updates = bit(0),
                                .stateful = true,
                                .cpu = {cpu::assign}};

constinit const OpDef add_assign_op{.name = "add_assign",
                                    .infer = infer_add_assign,
                                    .gradient = [](const GradientContext& g) -> Tensors {
                                      return {g.dy(), g.dy()};
                                    },
                                    .updates = bit(0),
                                    .stateful = true,
                                    .cpu = {cpu::add_assign}};

constinit const OpDef assign_if_op{.name = "assign_if",
                                   .infer = infer_assign_if,
                                   .updates = bit(0),
                                   .stateful = true,
                                   .cpu = {cpu::assign_if}};

constinit const OpDef sgd_update_op{.name = "sgd_update",
                                    .infer = infer_sgd<2>,
                                    .updates = bit(0),
                                    .stateful = true,
                                    .cpu = {cpu::sgd_update}};

constinit const OpDef sgd_momentum_update_op{.name = "sgd_update",
                                             .infer = infer_sgd<3>,
                                             .updates = bit(0) | bit(1),
                                             .stateful = true,
                                             .cpu = {cpu::sgd_update}};

constinit const OpDef adam_update_op{.name = "adam_update",
                                     .infer = infer_adam,
                                     .updates = bit(0) | bit(1) | bit(2),
                                     .stateful = true,
                                     .cpu = {cpu::adam_update}};

constinit const OpDef schedule_op{.name = "schedule",
                                  .infer =
                                      [](Inference& inference) {
                                        require_scalar(inference, 0, DType::i64, "the step");
                                        inference.output(DType::f64, {});
                                      },
                                  .cpu = {cpu::schedule}};

constinit const OpDef increment_op{.name = "increment",
                                   .infer = infer_increment,
                                   .updates = bit(0),
                                   .stateful = true,
                                   .cpu = {cpu::increment}};

constinit const OpDef add_count_op{.name = "add_count",
                                   .infer =
                                       [](Inference& inference) {
                                         require_scalar(inference, 0, DType::i64, "n");
                                         require_scalar(inference, 1, DType::i64, "rows");
                                         output_first(inference);
                                       },
                                   .updates = bit(0),
                                   .stateful = true,
                                   .cpu = {cpu::add_count}};

constinit const OpDef at_least_op{.name = "at_least",
                                  .infer =
                                      [](Inference& inference) {
                                        require_scalar(inference, 0, DType::i64, "n");
                                        inference.output(DType::boolean, {});
                                      },
                                  .cpu = {cpu::at_least}};

constinit const OpDef accumulate_op{.name = "accumulate",
                                    .infer = infer_accumulate,
                                    .updates = bit(0),
                                    .stateful = true,
                                    .cpu = {cpu::accumulate}};

constinit const OpDef clear_if_op{
    .name = "clear_if",
    .infer =
        [](Inference& inference) {
          const DType dtype = inference.inputs[0].dtype;
          inference.require(detail::is_arithmetic(dtype) || dtype == DType::i64,
                            "clears f32, f64 and i64");
          inference.require(is_scalar(inference.inputs[1], DType::boolean),
                            "`ready` must be a bool scalar");
          output_first(inference);
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::clear_if}};

constinit const OpDef with_updates_op{.name = "with_updates",
                                      .infer = output_first,
                                      .gradient = [](const GradientContext& g) -> Tensors {
                                        Tensors all(static_cast<std::size_t>(g.inputs()));
                                        all[0] = g.dy();
                                        return all;
                                      },
                                      .shape_only = from(1),
                                      .stateful = true,
                                      .view = [](const MemoryQuery&) -> std::size_t { return 0; }};

}  // namespace ebb
