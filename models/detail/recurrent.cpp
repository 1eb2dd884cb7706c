#include "ebb/models/detail/recurrent.h"

#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/sequence.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb::models {

Tensors both_ways(const BothWays& stack, const Tensor& x, const Tensors& initial,
                  const std::function<Tensors(const Tensor& x, std::size_t i,
                                              const Tensors& initial)>& run_layer) {
  constexpr const char* kStates[] = {"hidden", "cell"};
  for (std::size_t s = 0; s < initial.size(); ++s) {
    if (!initial[s].defined() || !x.defined() || x.rank() != 3) continue;
    const Shape expected{static_cast<std::int64_t>(stack.layers), x.shape().dim(0), stack.hidden};
    if (!ebb::detail::may_equal(initial[s].shape(), expected))
      ebb::detail::refuse<ShapeError>(stack.model, "the initial " + std::string(kStates[s]) +
                                                       " must be [2 layers, batch, hidden], here " +
                                                       expected.to_string() + "; it is " +
                                                       initial[s].to_string());
  }
  const auto backwards = [&](const Tensor& sequence) {
    return stack.lengths.defined() ? reverse_sequence(sequence, stack.lengths) : flip(sequence, 1);
  };
  std::vector<Tensors> states(initial.size());  // after the last step, of each layer
  const auto run = [&](const Tensor& below, std::size_t i) {
    Tensors before;
    const auto begin = static_cast<std::int64_t>(i);
    for (const Tensor& state : initial)
      before.push_back(state.defined() ? slice(state, begin, begin + 1) : Tensor());
    Tensors results = run_layer(below, i, before);
    for (std::size_t s = 0; s < states.size(); ++s) states[s].push_back(std::move(results[s + 1]));
    return std::move(results[0]);
  };
  Tensor below = x;
  for (std::size_t i = 0; i < stack.layers; i += 2) {
    if (i > 0) below = dropout(below, stack.dropout, stack.phase);
    const Tensor forward = run(below, i);
    Tensor backward = backwards(below);
    backward = run(backward, i + 1);
    backward = backwards(backward);
    below = concat({forward, backward}, 2);
  }
  Tensors results = {below};
  for (const Tensors& state : states) results.push_back(concat(state));
  return results;
}

}  // namespace ebb::models
