// Shared parts of the stacks of recurrent layers.
#pragma once
#include <cmath>
#include <functional>
#include <vector>

#include "ebb/core/ops/random.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {

// Declares "l.input" [in, columns hidden], "l.recurrent" [hidden, columns hidden] and "l.bias"
// [4 hidden] of each layer l, or the two biases of the option. With two directions, each layer's
// "l.reverse.input" and so on follow. The matrices start uniform within 1 / sqrt(hidden);
// bias(bound) gives the bias's initializer. Throws as the models' constructors say.
template <class Weights, class Options, class Bias>
std::vector<Weights> declare_layers(const char* model, const Parameters& parameters,
                                    std::int64_t in, const Options& options, std::int64_t columns,
                                    const Bias& bias, CallSite site) {
  const ebb::detail::Declaring at(parameters, site);
  require_size(model, "in", in);
  require_size(model, "hidden", options.hidden);
  require_size(model, "layers", options.layers);
  if (!(options.dropout >= 0 && options.dropout < 1))
    ebb::detail::refuse(model,
                        "dropout = " + std::to_string(options.dropout) + " is outside [0, 1)");
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
        .bias = declare("bias", {(options.recurrent_bias ? columns : 4) * hidden}, bias(bound)),
        .recurrent_bias = options.recurrent_bias ? declare("recurrent_bias", {columns * hidden},
                                                           initializers::uniform(-bound, bound))
                                                 : Tensor(),
    });
  }
  return layers;
}

// Runs each of `layers` in two passes, the second over the sequences backwards. run_layer(x, i)
// runs the i-th weights and returns their output at each step. Returns the last layer's output,
// both directions side by side.
Tensor both_ways(const Tensor& x, std::size_t layers, const Tensor& lengths, double dropout,
                 Phase phase, const std::function<Tensor(const Tensor&, std::size_t)>& run_layer);

// Throws ShapeError "[lstm] the initial hidden must be [2 layers, ..." unless the initial states
// are [layers, batch, hidden] (both directions counted), with the line of the CallSiteScope it is
// called in. `what` is the states' name, x the sequences. Undefined states pass. An x that is no
// [batch, time, in] passes too: the layers refuse it.
void require_states(const char* model, const char* what, const Tensor& states, const Tensor& x,
                    std::size_t layers, std::int64_t hidden);

// The i-th of initial states [n, batch, hidden], as [1, batch, hidden]; undefined if they are.
Tensor initial_state(const Tensor& states, std::size_t i);

}  // namespace ebb::models
