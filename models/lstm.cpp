#include "ebb/models/lstm.h"

#include <cmath>

#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/sequence.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/sizes.h"

namespace ebb::models {

Lstm::Lstm(const Parameters& parameters, std::int64_t in, const LstmOptions& options, CallSite site)
    : dropout_(options.dropout), is_bidirectional_(options.bidirectional) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("lstm", "in", in);
  require_size("lstm", "hidden", options.hidden);
  require_size("lstm", "layers", options.layers);
  if (!(dropout_ >= 0 && dropout_ < 1))
    throw Error(ebb::detail::message(
        "lstm", "dropout = " + std::to_string(dropout_) + " is outside [0, 1)", site));
  const std::int64_t gates = 4 * options.hidden;
  const double bound = 1 / std::sqrt(static_cast<double>(options.hidden));
  const std::int64_t directions = is_bidirectional_ ? 2 : 1;
  for (std::int64_t i = 0; i < directions * options.layers; ++i) {
    const std::int64_t layer = i / directions;
    const std::string name = std::to_string(layer) + (i % directions ? ".reverse." : ".");
    const auto declare = [&](const char* what, const Shape& shape, const Initializer& initializer) {
      return parameters.declare(name + what, shape, initializer);
    };
    layers_.push_back({
        .input = declare("input", {layer ? directions * options.hidden : in, gates},
                         initializers::uniform(-bound, bound)),
        .recurrent =
            declare("recurrent", {options.hidden, gates}, initializers::uniform(-bound, bound)),
        .bias = declare("bias", {gates}, initializers::lstm_bias(bound)),
    });
  }
}

LstmOutput Lstm::operator()(const Tensor& x, const LstmCall& call, CallSite site) const {
  if (is_bidirectional_) {
    const ebb::detail::CallSiteScope scope(site);
    return both_ways(x, call);
  }
  LstmResult result = lstm({x, site}, layers_,
                           {.dropout = dropout_,
                            .phase = call.phase,
                            .hidden = call.initial.hidden,
                            .cell = call.initial.cell,
                            .lengths = call.lengths});
  return {std::move(result.sequence), std::move(result.hidden), std::move(result.cell)};
}

// Each layer in two passes: the second over the sequences backwards.
LstmOutput Lstm::both_ways(const Tensor& x, const LstmCall& call) const {
  const auto backwards = [&](const Tensor& sequence) {
    return call.lengths.defined() ? reverse_sequence(sequence, call.lengths) : flip(sequence, 1);
  };
  const auto initial = [](const Tensor& states, std::size_t i) {
    const auto begin = static_cast<std::int64_t>(i);
    return states.defined() ? slice(states, begin, begin + 1) : Tensor();
  };
  Tensor below = x;
  Tensors hidden, cell;
  for (std::size_t i = 0; i < layers_.size(); i += 2) {
    if (i > 0) below = dropout(below, dropout_, call.phase);
    const auto pass = [&](const Tensor& sequence, std::size_t direction) {
      LstmResult result = lstm(sequence, {&layers_[direction], 1},
                               {.hidden = initial(call.initial.hidden, direction),
                                .cell = initial(call.initial.cell, direction),
                                .lengths = call.lengths});
      hidden.push_back(std::move(result.hidden));
      cell.push_back(std::move(result.cell));
      return std::move(result.sequence);
    };
    const Tensor forward = pass(below, i);
    below = concat({forward, backwards(pass(backwards(below), i + 1))}, 2);
  }
  return {below, concat(hidden), concat(cell)};
}

}  // namespace ebb::models
