#include "ebb/models/detail/recurrent.h"

#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/sequence.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb::models {

Tensor both_ways(const Tensor& x, std::size_t layers, const Tensor& lengths, double probability,
                 Phase phase, const std::function<Tensor(const Tensor&, std::size_t)>& run_layer) {
  const auto backwards = [&](const Tensor& sequence) {
    return lengths.defined() ? reverse_sequence(sequence, lengths) : flip(sequence, 1);
  };
  Tensor below = x;
  for (std::size_t i = 0; i < 2 * layers; i += 2) {
    if (i > 0) below = dropout(below, probability, phase);
    const Tensor forward = run_layer(below, i);
    Tensor backward = backwards(below);
    backward = run_layer(backward, i + 1);
    backward = backwards(backward);
    below = concat({forward, backward}, 2);
  }
  return below;
}

void require_states(const char* model, const char* what, const Tensor& states, const Tensor& x,
                    std::size_t layers, std::int64_t hidden) {
  if (!states.defined() || !x.defined() || x.rank() != 3) return;
  const Shape expected{static_cast<std::int64_t>(layers), x.shape().dim(0), hidden};
  if (!ebb::detail::may_equal(states.shape(), expected))
    ebb::detail::refuse<ShapeError>(
        model, "the initial " + std::string(what) + " must be [2 layers, batch, hidden], here " +
                   expected.to_string() + "; it is " + states.to_string());
}

Tensor initial_state(const Tensor& states, std::size_t i) {
  const auto begin = static_cast<std::int64_t>(i);
  return states.defined() ? slice(states, begin, begin + 1) : Tensor();
}

}  // namespace ebb::models
