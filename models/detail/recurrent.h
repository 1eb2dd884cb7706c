// What stacks of recurrent layers have in common.
#pragma once
#include <cmath>
#include <functional>
#include <vector>

#include "ebb/core/ops/random.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/models/detail/sizes.h"

namespace ebb::models {

// Declares "l.input" [in, columns hidden], "l.recurrent" [hidden, columns hidden] and "l.bias"
// [4 hidden] of each layer, and behind them, where there are two directions, "l.reverse.input" and
// so on. Both start uniform within 1 / sqrt(hidden); bias(bound) says how that does. Throws what
// the models say.
template <class Weights, class Options, class Bias>
std::vector<Weights> declare_layers(const char* model, const Parameters& parameters,
                                    std::int64_t in, const Options& options, std::int64_t columns,
                                    const Bias& bias, CallSite site) {
  const ebb::detail::Declaring at(parameters, site);
  require_size(model, "in", in);
  require_size(model, "hidden", options.hidden);
  require_size(model, "layers", options.layers);
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw Error(ebb::detail::message(
        model, "dropout = " + std::to_string(options.dropout) + " is outside [0, 1)", site));
  const std::int64_t hidden = options.hidden;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const std::int64_t directions = options.bidirectional ? 2 : 1;
  std::vector<Weights> layers;
  for (std::int64_t i = 0; i < directions * options.layers; ++i) {
    const std::int64_t layer = i / directions;
    const std::string name = std::to_string(layer) + (i % directions ? ".reverse." : ".");
    const auto declare = [&](const char* what, const Shape& shape, const Initializer& initializer) {
      return parameters.declare(name + what, shape, initializer);
    };
    layers.push_back({
        .input = declare("input", {layer ? directions * hidden : in, columns * hidden},
                         initializers::uniform(-bound, bound)),
        .recurrent =
            declare("recurrent", {hidden, columns * hidden}, initializers::uniform(-bound, bound)),
        .bias = declare("bias", {4 * hidden}, bias(bound)),
    });
  }
  return layers;
}

// Each of `layers` in two passes: the second over the sequences backwards. pass(x, i) is that with
// the i-th weights, and gives what they make at each step; it returns that of the last layer, both
// directions side by side.
Tensor both_ways(const Tensor& x, std::size_t layers, const Tensor& lengths, double dropout,
                 Phase phase, const std::function<Tensor(const Tensor&, std::size_t)>& pass);

// Throws ShapeError "[lstm] the initial hidden must be [2 layers, ..." for initial states that
// are something else than [layers, batch, hidden] (both directions counted), for the line of the
// scope it is called in. `what` is their name, x the sequences; states that hold nothing are right,
// and an x that is no [batch, time, in] is for the passes to refuse.
void require_states(const char* model, const char* what, const Tensor& states, const Tensor& x,
                    std::size_t layers, std::int64_t hidden);

// The i-th of initial states [n, batch, hidden], as one of [1, batch, hidden]; or nothing.
Tensor initial_state(const Tensor& states, std::size_t i);

}  // namespace ebb::models
