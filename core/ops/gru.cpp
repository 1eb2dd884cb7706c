#include "ebb/core/ops/gru.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/recurrent.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {

GruResult gru(const Operand& x, std::span<const GruWeights> layers, const GruPassOptions& options) {
  Tensors states;
  if (options.hidden.defined()) states = {options.hidden};
  Tensors outputs = detail::recurrent(gru_op, x,
                                      {.cell = RecurrentCell::gru,
                                       .states = std::move(states),
                                       .weights = detail::weights_of(layers),
                                       .dropout = options.dropout,
                                       .phase = options.phase,
                                       .lengths = options.lengths});
  return {std::move(outputs[0]), std::move(outputs[1])};
}

namespace {
constexpr OpDef gru_cell_function{.name = "gru_cell", .infer = detail::infer_cell};
}  // namespace

Tensor gru_cell(const Operand& x, const Tensor& hidden, const GruWeights& weights) {
  const detail::CallSiteScope scope(x.site());
  const detail::CalledScope called(gru_cell_function.name);
  const Tensor& row = detail::tensor_of(gru_cell_function, x);
  const Operand state_before = hidden, w = weights.input, r = weights.recurrent, b = weights.bias;
  InlineVector<const Operand*, 5> operands{&x};
  if (hidden.defined()) operands.push_back(&state_before);
  for (const Operand* weight : {&w, &r, &b}) operands.push_back(weight);
  detail::check(gru_cell_function, {operands.data(), operands.size()},
                RecurrentAttributes{.cell = RecurrentCell::gru}, x.site());
  const Tensor state = hidden.defined() ? unsqueeze(hidden, 0) : Tensor();
  return squeeze(gru(unsqueeze(row, 1), {&weights, 1}, {.hidden = state}).hidden, 0);
}

constinit const OpDef gru_op{.name = "gru",
                             .infer = detail::infer_recurrent,
                             .gradient = detail::recurrent_gradient,
                             .keeps = {kAll, bit(0) | bit(2)},
                             .optional_outputs = bit(2),
                             .skippable_outputs = bit(0) | bit(1),
                             .cpu = {cpu::recurrent, cpu::recurrent_memory},
                             .cuda = {.run = cuda::recurrent,
                                      .memory = cuda::recurrent_memory,
                                      .prepare = cuda::recurrent_prepare}};

constinit const OpDef gru_backward_op{
    .name = "gru_backward",
    .infer = detail::infer_recurrent_backward,
    .takes_over = bit(kRecurrentBackwardX),
    .destroys = bit(kRecurrentBackwardReserve),
    .skippable_outputs = kAll,
    .cpu = {cpu::recurrent_backward, cpu::recurrent_backward_memory},
    .cuda = {.run = cuda::recurrent_backward,
             .memory = cuda::recurrent_backward_memory,
             .prepare = cuda::recurrent_backward_prepare}};

}  // namespace ebb
