#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/onnx/translation.h"

namespace ebb::detail {

// ONNX has one layer of x [time, batch, in], and weights [1, gates, in]. Its gates are i, o, f, g,
// or z, r, n. It has two biases: an LSTM's are added, and only the GRU's n needs both.
OnnxNames onnx_recurrent(const OnnxCall& call) {
  const auto& how = call.attribute<RecurrentAttributes>();
  if (how.dropout > 0) call.refuse(" with dropout", " but in Phase::inference");
  const RecurrentOperands at(how);
  // The columns of gates, from the position of each in ebb: i, f, g, o, or r, z, n, and q in a
  // bias. Gate 4 is the zeros behind a bias.
  const auto row = [&](const std::vector<std::int64_t>& gates) {
    const Tensor first = unsqueeze(Tensor::from(gates) * how.hidden, 1);
    return call.constant(reshape(first + arange(static_cast<double>(how.hidden)), {1, -1}));
  };
  const std::string of_weights = how.has_cell() ? row({0, 3, 1, 2}) : row({1, 0, 2}),
                    of_biases =
                        how.has_cell() ? row({0, 3, 1, 2, 4, 4, 4, 4}) : row({1, 0, 2, 4, 4, 3}),
                    zero = call.number(0, call.in(0).dtype, {how.hidden}),
                    of_directions = call.integers({1});
  const auto weight = [&](std::size_t input) {
    const std::string gates = call.add("Gather", {call.inputs[input], of_weights}, {{"axis", 1}});
    return call.add("Transpose", {gates}, {{"perm", std::vector<std::int64_t>{1, 2, 0}}});
  };
  const auto state = [&](std::int64_t input, std::int64_t layer) -> std::string {
    if (input < 0) return "";
    return call.add("Slice", {call.inputs[static_cast<std::size_t>(input)], call.integers({layer}),
                              call.integers({layer + 1})});
  };
  const std::string lengths =
      at.lengths < 0 ? ""
                     : call.cast(call.inputs[static_cast<std::size_t>(at.lengths)], DType::i32);
  OnnxAttributes attributes = {{"hidden_size", how.hidden}};
  if (!how.has_cell()) attributes.push_back({"linear_before_reset", 1});

  std::string x = call.transpose(call.inputs[0], 3, 0, 1);
  std::vector<OnnxNames> last(at.reserve);  // each layer's states, by output
  for (std::int64_t layer = 0; layer < how.layers; ++layer) {
    const std::string bias = call.add("Concat", {call.inputs[at.b(layer)], zero}, {{"axis", 0}});
    OnnxNames inputs = {
        x,       weight(at.w(layer)), weight(at.r(layer)), call.add("Gather", {bias, of_biases}),
        lengths, state(at.h0, layer)};
    if (how.has_cell()) inputs.push_back(state(at.c0, layer));
    const OnnxNames made =
        call.add_many(static_cast<int>(at.reserve), call.type, inputs, attributes);
    x = call.add("Squeeze", {made[0], of_directions});
    for (std::size_t i = 1; i < at.reserve; ++i) last[i].push_back(made[i]);
  }
  OnnxNames outputs = {call.transpose(x, 3, 0, 1)};
  for (std::size_t i = 1; i < at.reserve; ++i) {
    outputs.push_back(call.add("Concat", last[i], {{"axis", 0}}));
    if (lengths.empty() || at.h0 < 0) continue;
    // A sequence of length 0 leaves its state as it was; onnxruntime gives zeros.
    const std::string is_empty = call.add("Equal", {lengths, call.number(0, DType::i32)});
    outputs[i] =
        call.add("Where", {call.add("Unsqueeze", {is_empty, call.integers({0, 2})}),
                           call.inputs[static_cast<std::size_t>(at.h0) + i - 1], outputs[i]});
  }
  return outputs;
}

}  // namespace ebb::detail
