#include "ebb/core/ops/arithmetic.h"
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
};

std::vector<SampleInput> inputs_of(const Stack& stack) {
  std::vector<SampleInput> inputs = {{{kOpen, 4, kIn}}};
  if (stack.state) inputs.resize(3, {{stack.layers, kOpen, kHidden}});
  if (stack.dropout) inputs.push_back({{2}, Values::draw});
  if (stack.lengths) inputs.push_back({{kOpen}, Values::long_labels});  // 0 to 4
  for (int layer = 0; layer < stack.layers; ++layer) {
    inputs.push_back({{layer ? kHidden : kIn, 4 * kHidden}});
    inputs.push_back({{kHidden, 4 * kHidden}});
    inputs.push_back({{4 * kHidden}});
  }
  return inputs;
}

Tensors run(const Stack& stack, const Tensors& in) {
  const LstmAttributes attributes{.layers = stack.layers,
                                  .hidden = kHidden,
                                  .has_state = stack.state,
                                  .dropout = stack.dropout ? 0.3 : 0,
                                  .has_lengths = stack.lengths};
  const InlineVector<Input, 16> inputs(in.begin(), in.end());
  Tensors all = apply(lstm_op, {inputs.data(), inputs.size()}, attributes, {});
  return {all[0], all[1], all[2]};
}

}  // namespace

void add_lstm_samples(std::vector<Sample>& samples, DType dtype) {
  std::vector<Stack> stacks = {Stack{1, false, false}, Stack{2, true, true, true}};
  if (!is_half(dtype))
    stacks = {stacks[0],
              Stack{2, true, false},
              Stack{3, true, true},
              Stack{12, true, true},
              Stack{1, false, false, true},
              Stack{2, true, true, true}};
  for (const Stack& stack : stacks) {
    const std::string how = ", " + std::to_string(stack.layers) + " layers" +
                            (stack.state ? ", given state" : "") +
                            (stack.dropout ? ", dropout" : "") + (stack.lengths ? ", lengths" : "");
    samples.push_back({.op = &lstm_op,
                       .name = "lstm" + how,
                       .inputs = inputs_of(stack),
                       .call = [stack](const Tensors& in) { return run(stack, in); },
                       .order = 1});
    // The gradient operator, given each of the gradients that may arrive.
    for (int given = 0; given < 3; ++given)
      samples.push_back({.op = &lstm_backward_op,
                         .name = "lstm_backward" + how + ", of output " + std::to_string(given),
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
