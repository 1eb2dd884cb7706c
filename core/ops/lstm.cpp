#include "ebb/core/ops/lstm.h"

#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/lstm_operands.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/random/random.h"

namespace ebb {
namespace {

using Values = InlineVector<Tensor, 16>;
using ValueInputs = InlineVector<Input, 16>;

ValueInputs inputs_of(const Values& values) { return ValueInputs(values.begin(), values.end()); }
// The same of values that nobody reads again.
ValueInputs inputs_of(Values&& values) {
  return ValueInputs(std::make_move_iterator(values.begin()),
                     std::make_move_iterator(values.end()));
}

bool fits(const Spec& spec, const Shape& shape) { return detail::may_equal(spec.shape, shape); }

void infer_lstm(Inference& inference) {
  const auto& attributes = inference.attribute<LstmAttributes>();
  const LstmOperands at(attributes);
  const std::int64_t hidden = attributes.hidden;
  const Spec& x = inference.inputs[0];
  inference.require(is_floating(x.dtype), detail::kTakesFloating);
  inference.require(x.shape.rank() == 3, "takes x [batch, time, in]");
  for (std::int64_t i = 1; i < at.count; ++i)
    if (at.has_gradient(i) && inference.inputs[static_cast<std::size_t>(i)].dtype != x.dtype)
      inference.fail("takes inputs of one dtype (cast() converts)");

  if (at.draw >= 0)
    inference.require(detail::is_draw(inference.inputs[static_cast<std::size_t>(at.draw)]),
                      "the draw must be i64[2]");
  if (at.lengths >= 0) {
    const Spec& lengths = inference.inputs[static_cast<std::size_t>(at.lengths)];
    inference.require(lengths.dtype == DType::i64 && fits(lengths, {x.shape.dim(0)}),
                      "the lengths must be integers [batch]");
  }

  const Shape state{attributes.layers, x.shape.dim(0), hidden};
  if (attributes.has_state)
    inference.require(fits(inference.inputs[1], state) && fits(inference.inputs[2], state),
                      "the states must be [layers, batch, hidden]");
  for (int layer = 0; layer < attributes.layers; ++layer) {
    const auto weights = inference.inputs.subspan(at.w(layer), 3);
    const std::int64_t in = layer ? hidden : x.shape.dim(2);
    if (!fits(weights[0], {in, 4 * hidden}) || !fits(weights[1], {hidden, 4 * hidden}) ||
        !fits(weights[2], {4 * hidden}))
      inference.fail("the weights of layer " + std::to_string(layer) +
                     " must be [in, 4 hidden], [hidden, 4 hidden], [4 hidden]");
  }
  inference.output(x.dtype, {x.shape.dim(0), x.shape.dim(1), hidden});
  inference.output(x.dtype, state);
  inference.output(x.dtype, state);
  inference.output(DType::u8, {kOpen});
}

// One output per forward input except the draw.
void infer_lstm_backward(Inference& inference) {
  const auto& attributes = inference.attribute<LstmAttributes>();
  const LstmOperands at(attributes);
  for (std::int64_t i = 0; i < at.count; ++i) {
    const Spec& input = inference.inputs[static_cast<std::size_t>(kLstmBackwardX + i)];
    if (at.has_gradient(i)) inference.output(input.dtype, input.shape);
  }
}

Tensors lstm_gradient(const GradientContext& g) {
  LstmAttributes attributes = g.attribute<LstmAttributes>();
  const LstmOperands at(attributes);
  Values values{g.take_y(3), g.take_y(0)};
  IndexSet unwanted;
  for (int i = 0; i < at.count; ++i) {
    values.push_back(g.take_x(i));
    if (at.has_gradient(i) && !g.wants(i))
      unwanted.insert(at.gradient(static_cast<std::size_t>(i)));
  }
  for (int i = 0; i < 3; ++i) {
    if (!g.dy(i).defined()) continue;
    values.push_back(g.take_dy(i));
    attributes.d_given |= 1 << i;
  }
  const ValueInputs inputs = inputs_of(std::move(values));
  const Tensors all =
      apply(lstm_backward_op, {inputs.data(), inputs.size()}, attributes, g.site(), unwanted);
  Tensors wanted(static_cast<std::size_t>(at.count));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (at.has_gradient(static_cast<std::int64_t>(i)) && g.wants(static_cast<int>(i)))
      wanted[i] = all[at.gradient(i)];
  return wanted;
}

}  // namespace

LstmResult lstm(const Operand& x, std::span<const LstmWeights> layers,
                const LstmPassOptions& options) {
  const auto require = [&](bool condition, const char* text) {
    if (!condition) throw Error(detail::message("lstm", text, x.site()));
  };
  const Tensor& first = detail::tensor_of(lstm_op, x);
  require(!layers.empty(), "takes at least one layer");
  require(options.dropout >= 0 && options.dropout < 1, "takes a dropout in [0, 1)");
  require(options.hidden.defined() == options.cell.defined(), "takes both states or neither");
  require(!options.lengths.defined() || options.lengths.dtype() == DType::i64 ||
              options.lengths.dtype() == DType::i32,
          "takes lengths that are i32 or i64");
  const Tensor& recurrent = layers[0].recurrent;
  require(recurrent.defined() && recurrent.rank() == 2,
          "the recurrent weight must be [hidden, 4 hidden]");
  const std::int64_t hidden = recurrent.shape().dim(0);
  require(hidden >= 0 && hidden <= std::numeric_limits<std::int32_t>::max() / 4,
          "the size of the recurrent weight must be known, and below 2^29");

  LstmAttributes attributes{.layers = static_cast<std::int32_t>(layers.size()),
                            .hidden = static_cast<std::int32_t>(hidden),
                            .has_state = options.hidden.defined(),
                            .has_lengths = options.lengths.defined()};
  Values values{first};
  const detail::GeneratorTrial trial;
  if (attributes.has_state) {
    values.push_back(options.hidden);
    values.push_back(options.cell);
  }
  if (layers.size() > 1 && options.phase == Phase::training && options.dropout > 0) {
    attributes.dropout = options.dropout;
    // In a graph the draw is a node, even where the sequences are captured data.
    const Tensor& weight = layers[0].recurrent;
    values.push_back(detail::next_draw(first.is_symbolic() ? first : weight, x.site()));
  }
  if (attributes.has_lengths) values.push_back(cast(options.lengths, DType::i64));
  for (const LstmWeights& layer : layers)
    for (const Tensor* weight : {&layer.input, &layer.recurrent, &layer.bias})
      values.push_back(*weight);
  const ValueInputs inputs = inputs_of(values);
  Tensors outputs = apply(lstm_op, {inputs.data(), inputs.size()}, attributes, x.site());
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

LstmCellState lstm_cell(const Operand& x, const LstmCellState& state, const LstmWeights& weights) {
  const detail::CallSiteScope scope(x.site());
  const Tensor& row = detail::tensor_of(lstm_op, x);
  if (row.rank() != 2)
    throw ShapeError(
        detail::message("lstm_cell", "takes x [batch, in]; x is " + row.to_string(), x.site()));
  const auto layer = [](const Tensor& part) {
    return part.defined() ? unsqueeze(part, 0) : Tensor();
  };
  const LstmResult result = lstm(unsqueeze(row, 1), {&weights, 1},
                                 {.hidden = layer(state.hidden), .cell = layer(state.cell)});
  return {squeeze(result.hidden, 0), squeeze(result.cell, 0)};
}

constinit const OpDef lstm_op{
    .name = "lstm",
    .infer = infer_lstm,
    .gradient = lstm_gradient,
    .keeps = {kAll, bit(0) | bit(3)},
    .optional_outputs = bit(3),
    .skippable_outputs = bit(0) | bit(1) | bit(2),
    .cpu = {cpu::lstm, cpu::lstm_memory},
    .cuda = {.run = cuda::lstm, .memory = cuda::lstm_memory, .prepare = cuda::lstm_prepare}};

constinit const OpDef lstm_backward_op{.name = "lstm_backward",
                                       .infer = infer_lstm_backward,
                                       .takes_over = bit(kLstmBackwardX),
                                       .destroys = bit(kLstmBackwardReserve),
                                       .skippable_outputs = kAll,
                                       .cpu = {cpu::lstm_backward, cpu::lstm_backward_memory},
                                       .cuda = {.run = cuda::lstm_backward,
                                                .memory = cuda::lstm_backward_memory,
                                                .prepare = cuda::lstm_backward_prepare}};

}  // namespace ebb
