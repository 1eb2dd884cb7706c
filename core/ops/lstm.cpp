#include "ebb/core/ops/lstm.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/recurrent.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {

LstmResult lstm(const Operand& x, std::span<const LstmWeights> layers,
                const LstmPassOptions& options) {
  if (options.hidden.defined() != options.cell.defined())
    throw Error(detail::message("lstm", "takes both states or neither", x.site()));
  Tensors states;
  if (options.hidden.defined()) states = {options.hidden, options.cell};
  Tensors outputs = detail::recurrent(lstm_op, x,
                                      {.cell = RecurrentCell::lstm,
                                       .states = std::move(states),
                                       .weights = detail::weights_of(layers),
                                       .dropout = options.dropout,
                                       .phase = options.phase,
                                       .lengths = options.lengths});
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

namespace {
constexpr OpDef lstm_cell_function{.name = "lstm_cell", .infer = detail::infer_cell};
}  // namespace

LstmCellState lstm_cell(const Operand& x, const LstmCellState& state, const LstmWeights& weights) {
  const detail::CallSiteScope scope(x.site());
  const detail::CalledScope called(lstm_cell_function.name);
  const Tensor& row = detail::tensor_of(lstm_cell_function, x);
  if (state.hidden.defined() != state.cell.defined())
    throw Error(detail::message("lstm_cell", "takes both states or neither", x.site()));
  const Operand h = state.hidden, c = state.cell, w = weights.input, r = weights.recurrent,
                b = weights.bias;
  InlineVector<const Operand*, 6> operands{&x};
  if (state.hidden.defined())
    for (const Operand* before : {&h, &c}) operands.push_back(before);
  for (const Operand* weight : {&w, &r, &b}) operands.push_back(weight);
  detail::check(lstm_cell_function, {operands.data(), operands.size()},
                RecurrentAttributes{.cell = RecurrentCell::lstm}, x.site());
  const auto layer = [](const Tensor& part) {
    return part.defined() ? unsqueeze(part, 0) : Tensor();
  };
  const LstmResult result = lstm(unsqueeze(row, 1), {&weights, 1},
                                 {.hidden = layer(state.hidden), .cell = layer(state.cell)});
  return {squeeze(result.hidden, 0), squeeze(result.cell, 0)};
}

constinit const OpDef lstm_op{.name = "lstm",
                              .infer = detail::infer_recurrent,
                              .gradient = detail::recurrent_gradient,
                              .keeps = {kAll, bit(0) | bit(3)},
                              .optional_outputs = bit(3),
                              .skippable_outputs = bit(0) | bit(1) | bit(2),
                              .cpu = {cpu::recurrent, cpu::recurrent_memory},
                              .cuda = {.run = cuda::recurrent,
                                       .memory = cuda::recurrent_memory,
                                       .prepare = cuda::recurrent_prepare}};

constinit const OpDef lstm_backward_op{
    .name = "lstm_backward",
    .infer = detail::infer_recurrent_backward,
    .takes_over = bit(kRecurrentBackwardX),
    .destroys = bit(kRecurrentBackwardReserve),
    .skippable_outputs = kAll,
    .cpu = {cpu::recurrent_backward, cpu::recurrent_backward_memory},
    .cuda = {.run = cuda::recurrent_backward,
             .memory = cuda::recurrent_backward_memory,
             .prepare = cuda::recurrent_backward_prepare}};

}  // namespace ebb
