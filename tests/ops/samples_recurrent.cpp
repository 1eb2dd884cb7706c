#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kIn = 2, kHidden = 3;

struct Stack {
  int layers;
  bool state, dropout, lengths = false;
  RecurrentCell cell = RecurrentCell::lstm;

  bool is_lstm() const { return cell == RecurrentCell::lstm; }
};

std::vector<SampleInput> inputs_of(const Stack& stack) {
  std::vector<SampleInput> inputs = {{{kOpen, 4, kIn}}};
  if (stack.state) inputs.resize(stack.is_lstm() ? 3 : 2, {{stack.layers, kOpen, kHidden}});
  if (stack.dropout) inputs.push_back({{2}, Values::draw});
  if (stack.lengths) inputs.push_back({{kOpen}, Values::long_labels});  // 0 to 4
  for (int layer = 0; layer < stack.layers; ++layer) {
    const std::int64_t columns = (stack.is_lstm() ? 4 : 3) * kHidden;
    inputs.push_back({{layer ? kHidden : kIn, columns}});
    inputs.push_back({{kHidden, columns}});
    inputs.push_back({{4 * kHidden}});
  }
  return inputs;
}

Tensors run(const Stack& stack, const Tensors& in) {
  const RecurrentAttributes attributes{.layers = stack.layers,
                                       .hidden = kHidden,
                                       .has_state = stack.state,
                                       .dropout = stack.dropout ? 0.3 : 0,
                                       .has_lengths = stack.lengths,
                                       .cell = stack.cell};
  const InlineVector<Input, 16> inputs(in.begin(), in.end());
  const OpDef& op = stack.is_lstm() ? lstm_op : gru_op;
  const Tensors all = apply(op, {inputs.data(), inputs.size()}, attributes, {});
  return Tensors(all.begin(), all.end() - 1);  // without the reserve
}

}  // namespace

void add_recurrent_samples(std::vector<Sample>& samples, DType dtype) {
  std::vector<Stack> stacks = {Stack{1, false, false}, Stack{2, true, true, true}};
  if (!is_half(dtype))
    stacks = {stacks[0],
              Stack{2, true, false},
              Stack{3, true, true},
              Stack{12, true, true},
              Stack{1, false, false, true},
              Stack{2, true, true, true}};
  const std::vector<Stack> of_lstm = stacks;
  for (Stack stack : of_lstm) {
    stack.cell = RecurrentCell::gru;
    if (stack.layers < 12) stacks.push_back(stack);
  }
  for (const Stack& stack : stacks) {
    const std::string name = stack.is_lstm() ? "lstm" : "gru";
    const std::string how = ", " + std::to_string(stack.layers) + " layers" +
                            (stack.state ? ", given state" : "") +
                            (stack.dropout ? ", dropout" : "") + (stack.lengths ? ", lengths" : "");
    samples.push_back({.op = stack.is_lstm() ? &lstm_op : &gru_op,
                       .name = name + how,
                       .inputs = inputs_of(stack),
                       .call = [stack](const Tensors& in) { return run(stack, in); },
                       .order = 1});
    // The gradient operator, given each of the gradients that may arrive; of a deep stack, whose
    // reference takes long, that of the sequence.
    const int arriving = stack.layers == 12 ? 1 : stack.is_lstm() ? 3 : 2;
    for (int given = 0; given < arriving; ++given)
      samples.push_back({.op = stack.is_lstm() ? &lstm_backward_op : &gru_backward_op,
                         .name = name + "_backward" + how + ", of output " + std::to_string(given),
                         .inputs = inputs_of(stack),
                         .call =
                             [stack, given](const Tensors& in) {
                               const auto output = static_cast<std::size_t>(given);
                               Tensors inputs = in, wanted;
                               for (Tensor& tensor : inputs) {
                                 if (!is_floating(tensor.dtype())) continue;
                                 if (!tensor.is_symbolic()) tensor = tensor.with_grad();
                                 wanted.push_back(tensor);
                               }
                               return gradients(sum(square(run(stack, inputs)[output])), wanted);
                             },
                         .order = 0,
                         .any_dtype = true,
                         .any_shape = true});
  }
}

}  // namespace ebb::tests
