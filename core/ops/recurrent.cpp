// lstm and gru, which differ in names and in the cell (core/kernels/recurrent.h).
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/random/random.h"

namespace ebb {
namespace {

using detail::may_equal, detail::tensor_of;
using Gradient = const GradientContext&;
using Values = InlineVector<Tensor, 16>;
using ValueInputs = InlineVector<Input, 16>;

bool fits(const Spec& spec, const Shape& shape) { return may_equal(spec.shape, shape); }

// Texts of errors: lstm has two states and four gates, gru one and three.
std::string state_must_be(RecurrentCell cell, const char* shape) {
  return std::string(cell == RecurrentCell::lstm ? "the states" : "the state") + " must be " +
         shape;
}
std::string hidden_and_gates(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "[hidden, 4 hidden]" : "[hidden, 3 hidden]";
}

// Checks W, R and b of one layer.
void require_weights(const Inference& inference, std::span<const Spec> weights, std::int64_t in,
                     std::int64_t hidden, const std::string& of_layer) {
  const RecurrentCell cell = inference.attribute<RecurrentAttributes>().cell;
  const std::int64_t gates = cell == RecurrentCell::lstm ? 4 : 3;
  if (!fits(weights[0], {in, gates * hidden}) || !fits(weights[1], {hidden, gates * hidden}) ||
      !fits(weights[2], {4 * hidden}))
    inference.fail("the weights" + of_layer + " must be [in, " + std::to_string(gates) +
                   " hidden], " + hidden_and_gates(cell) + ", [4 hidden]");
}

// The shape rule of both operators.
void infer_recurrent(Inference& inference) {
  const auto& attributes = inference.attribute<RecurrentAttributes>();
  const RecurrentOperands at(attributes);
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
  for (const std::int64_t input : {at.h0, at.c0})
    if (input >= 0 && !fits(inference.inputs[static_cast<std::size_t>(input)], state))
      inference.fail(state_must_be(attributes.cell, "[layers, batch, hidden]"));
  for (int layer = 0; layer < attributes.layers; ++layer)
    require_weights(inference, inference.inputs.subspan(at.w(layer), 3),
                    layer ? hidden : x.shape.dim(2), hidden, " of layer " + std::to_string(layer));
  inference.output(x.dtype, {x.shape.dim(0), x.shape.dim(1), hidden});
  for (std::size_t i = 1; i < at.reserve; ++i) inference.output(x.dtype, state);
  inference.output(DType::u8, {kOpen});
}

// The rule of one step: x [batch, in], the states [batch, hidden] if there are any, W, R, b.
void infer_cell(Inference& inference) {
  const RecurrentCell cell = inference.attribute<RecurrentAttributes>().cell;
  detail::require_arithmetic(inference);
  const Shape& x = inference.inputs[0].shape;
  inference.require(x.rank() == 2, "takes x [batch, in]");
  const auto weights = inference.inputs.last(3);
  const Shape& recurrent = weights[1].shape;
  const std::int64_t hidden = recurrent.rank() == 2 ? recurrent.dim(0) : kOpen;
  if (hidden == kOpen) inference.fail("the recurrent weight must be " + hidden_and_gates(cell));
  for (std::size_t i = 1; i + 3 < inference.inputs.size(); ++i)
    if (!fits(inference.inputs[i], {x.dim(0), hidden}))
      inference.fail(state_must_be(cell, "[batch, hidden]"));
  require_weights(inference, weights, x.dim(1), hidden, "");
}

// One output per forward input except the draw and the lengths.
void infer_recurrent_backward(Inference& inference) {
  const RecurrentOperands at(inference.attribute<RecurrentAttributes>());
  for (std::int64_t i = 0; i < at.count; ++i) {
    const Spec& input = inference.inputs[static_cast<std::size_t>(kRecurrentBackwardX + i)];
    if (at.has_gradient(i)) inference.output(input.dtype, input.shape);
  }
}

Tensors recurrent_gradient(Gradient g) {
  RecurrentAttributes attributes = g.attribute<RecurrentAttributes>();
  const RecurrentOperands at(attributes);
  const int reserve = static_cast<int>(at.reserve);
  Values values{g.take_y(reserve), g.take_y(0)};
  IndexSet unwanted;
  for (int i = 0; i < at.count; ++i) {
    values.push_back(g.take_x(i));
    if (at.has_gradient(i) && !g.wants(i))
      unwanted.insert(at.gradient(static_cast<std::size_t>(i)));
  }
  for (int i = 0; i < reserve; ++i) {
    if (!g.dy(i).defined()) continue;
    values.push_back(g.take_dy(i));
    attributes.d_given |= 1 << i;
  }
  // Nobody reads them again.
  const ValueInputs inputs(std::make_move_iterator(values.begin()),
                           std::make_move_iterator(values.end()));
  const Tensors all = apply(attributes.has_cell() ? lstm_backward_op : gru_backward_op, inputs,
                            attributes, g.site(), unwanted);
  Tensors wanted(static_cast<std::size_t>(at.count));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (at.has_gradient(static_cast<std::int64_t>(i)) && g.wants(static_cast<int>(i)))
      wanted[i] = all[at.gradient(i)];
  return wanted;
}

struct RecurrentCall {
  RecurrentCell cell;
  Tensors states;   // the initial ones: all, or none
  Tensors weights;  // of each layer W, R, b
  double dropout;
  Phase phase;
  const Tensor& lengths;
};
// The outputs: sequence, the last states, the reserve. Throws as lstm() says.
Tensors recurrent(const OpDef& op, const Operand& x, RecurrentCall call) {
  const detail::CalledScope called(op.name);
  const auto require = [&](bool condition, const std::string& text) {
    if (!condition) detail::refuse(op.name, text, x.site());
  };
  const Tensor& first = tensor_of(op, x);
  require(!call.weights.empty(), "takes at least one layer");
  require(call.dropout >= 0 && call.dropout < 1, "takes a dropout in [0, 1)");
  require(!call.lengths.defined() || call.lengths.dtype() == DType::i64 ||
              call.lengths.dtype() == DType::i32,
          "takes lengths that are i32 or i64");
  const Tensor& weight = call.weights[1];
  require(weight.defined() && weight.rank() == 2,
          "the recurrent weight must be " + hidden_and_gates(call.cell));
  const std::int64_t hidden = weight.shape().dim(0);
  require(hidden >= 0 && hidden <= std::numeric_limits<std::int32_t>::max() / 4,
          "the size of the recurrent weight must be known, and below 2^29");

  const std::size_t layers = call.weights.size() / 3;
  RecurrentAttributes attributes{.layers = static_cast<std::int32_t>(layers),
                                 .hidden = static_cast<std::int32_t>(hidden),
                                 .has_state = !call.states.empty(),
                                 .has_lengths = call.lengths.defined(),
                                 .cell = call.cell};
  Values values{first};
  const detail::GeneratorTrial trial;
  for (Tensor& state : call.states) values.push_back(std::move(state));
  if (layers > 1 && call.phase == Phase::training && call.dropout > 0) {
    attributes.dropout = call.dropout;
    // In a graph the draw is a node, even where the sequences are captured data.
    values.push_back(detail::next_draw(first.is_symbolic() ? first : weight, x.site()));
  }
  if (attributes.has_lengths) values.push_back(cast(call.lengths, DType::i64));
  for (Tensor& part : call.weights) values.push_back(std::move(part));
  return apply(op, ValueInputs(values.begin(), values.end()), attributes, x.site());
}

Tensor bias_of(const LstmWeights& layer) {
  return layer.recurrent_bias.defined() ? layer.bias + layer.recurrent_bias : layer.bias;
}

Tensor bias_of(const GruWeights& layer) {
  if (!layer.recurrent_bias.defined()) return layer.bias;
  const std::int64_t hidden = layer.recurrent.shape().dim(0);
  const auto [gates, n] = split<2>(layer.bias, {2 * hidden, hidden});
  const auto [recurrent_gates, q] = split<2>(layer.recurrent_bias, {2 * hidden, hidden});
  return concat({gates + recurrent_gates, n, q});
}

template <class Weights>
Tensors weights_of(std::span<const Weights> layers, CallSite site) {
  const detail::CallSiteScope scope(site);
  Tensors weights;
  weights.reserve(3 * layers.size());
  for (const Weights& layer : layers) {
    weights.push_back(layer.input);
    weights.push_back(layer.recurrent);
    weights.push_back(bias_of(layer));
  }
  return weights;
}

constexpr OpDef lstm_cell_function{.name = "lstm_cell", .infer = infer_cell};
constexpr OpDef gru_cell_function{.name = "gru_cell", .infer = infer_cell};

// Checks one step's operands: x, the states before it if there are any, and the weights.
template <class Weights>
detail::CalledScope check_cell(const OpDef& function, RecurrentCell cell, const Operand& x,
                               std::initializer_list<const Tensor*> states,
                               const Weights& weights) {
  detail::Operands operands{x};
  for (const Tensor* state : states)
    if (state->defined()) operands.emplace_back(*state, x.site());
  for (const Tensor* weight : {&weights.input, &weights.recurrent, &weights.bias})
    operands.emplace_back(*weight, x.site());
  return detail::check(function, operands, RecurrentAttributes{.cell = cell});
}

// A state as the first of several layers; nothing of nothing.
Tensor as_layer(const Tensor& state) { return state.defined() ? unsqueeze(state, 0) : Tensor(); }

// Each element of the weight matrices, the inputs of rank 2, meets each step of each row.
std::int64_t products(const MemoryQuery& query, int at) {
  const Shape& x = query.inputs[static_cast<std::size_t>(at)].shape;
  std::int64_t weights = 0;
  for (const Spec& input : query.inputs)
    if (input.shape.rank() == 2) weights += input.shape.elements();
  return x.dim(0) * x.dim(1) * weights;
}

// `results` are the outputs before the reserve.
constexpr OpDef forward(const char* name, Positions results, Positions reserve) {
  return {.name = name,
          .infer = infer_recurrent,
          .gradient = recurrent_gradient,
          .keeps = {kAll, bit(0) | reserve},
          .gradient_outputs = reserve,
          .optional_outputs = results,
          .products = [](const MemoryQuery& query) { return products(query, 0); },
          .cpu = cpu::in_float<cpu::recurrent, cpu::recurrent_memory>,
          .cuda = {.run = cuda::recurrent,
                   .memory = cuda::recurrent_memory,
                   .prepare = cuda::recurrent_prepare}};
}
constexpr OpDef backward(const char* name) {
  return {
      .name = name,
      .infer = infer_recurrent_backward,
      .takes_over = bit(kRecurrentBackwardX),
      .destroys = bit(kRecurrentBackwardReserve),
      .optional_outputs = kAll,
      .products = [](const MemoryQuery& query) { return 2 * products(query, kRecurrentBackwardX); },
      .cpu = cpu::in_float<cpu::recurrent_backward, cpu::recurrent_backward_memory>,
      .cuda = {.run = cuda::recurrent_backward,
               .memory = cuda::recurrent_backward_memory,
               .prepare = cuda::recurrent_backward_prepare}};
}

}  // namespace

LstmResult lstm(const Operand& x, const ListOf<LstmWeights>& layers,
                const LstmPassOptions& options) {
  if (options.hidden.defined() != options.cell.defined())
    detail::refuse("lstm", "takes both states or neither", x.site());
  Tensors states;
  if (options.hidden.defined()) states = {options.hidden, options.cell};
  Tensors outputs = recurrent(lstm_op, x,
                              {.cell = RecurrentCell::lstm,
                               .states = std::move(states),
                               .weights = weights_of<LstmWeights>(layers, x.site()),
                               .dropout = options.dropout,
                               .phase = options.phase,
                               .lengths = options.lengths});
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

GruResult gru(const Operand& x, const ListOf<GruWeights>& layers, const GruPassOptions& options) {
  Tensors states;
  if (options.hidden.defined()) states = {options.hidden};
  Tensors outputs = recurrent(gru_op, x,
                              {.cell = RecurrentCell::gru,
                               .states = std::move(states),
                               .weights = weights_of<GruWeights>(layers, x.site()),
                               .dropout = options.dropout,
                               .phase = options.phase,
                               .lengths = options.lengths});
  return {std::move(outputs[0]), std::move(outputs[1])};
}

LstmCellState lstm_cell(const Operand& x, const LstmCellState& state, const LstmWeights& given) {
  const detail::CallSiteScope scope(x.site());
  const LstmWeights weights{given.input, given.recurrent, bias_of(given)};
  if (state.hidden.defined() != state.cell.defined())
    detail::refuse("lstm_cell", "takes both states or neither", x.site());
  const detail::CalledScope called =
      check_cell(lstm_cell_function, RecurrentCell::lstm, x, {&state.hidden, &state.cell}, weights);
  const LstmResult result = lstm(unsqueeze(x.tensor(), 1), {&weights, 1},
                                 {.hidden = as_layer(state.hidden), .cell = as_layer(state.cell)});
  return {squeeze(result.hidden, 0), squeeze(result.cell, 0)};
}

Tensor gru_cell(const Operand& x, const Tensor& hidden, const GruWeights& given) {
  const detail::CallSiteScope scope(x.site());
  const GruWeights weights{given.input, given.recurrent, bias_of(given)};
  const detail::CalledScope called =
      check_cell(gru_cell_function, RecurrentCell::gru, x, {&hidden}, weights);
  const GruResult result =
      gru(unsqueeze(x.tensor(), 1), {&weights, 1}, {.hidden = as_layer(hidden)});
  return squeeze(result.hidden, 0);
}

constinit const OpDef lstm_op = forward("lstm", bit(0) | bit(1) | bit(2), bit(3));
constinit const OpDef lstm_backward_op = backward("lstm_backward");
constinit const OpDef gru_op = forward("gru", bit(0) | bit(1), bit(2));
constinit const OpDef gru_backward_op = backward("gru_backward");

}  // namespace ebb
