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

// A stack of layers that goes both ways, and one call of it.
struct BothWays {
  const char* model;
  std::size_t layers;   // a layer's two directions counted
  std::int64_t hidden;  // units of each
  double dropout;
  Phase phase;
  const Tensor& lengths;

  template <class Weights, class Call>
  BothWays(const char* model, const std::vector<Weights>& weights, double dropout, const Call& call)
      : model(model),
        layers(weights.size()),
        hidden(weights[0].recurrent.shape().dim(0)),
        dropout(dropout),
        phase(call.phase),
        lengths(call.lengths) {}
};

// Runs each layer in two passes, the second over the sequences backwards. `initial` are the states
// before the first step: the hidden one and an LSTM's cell, [layers, batch, hidden] each, or
// undefined. run_layer(x, i, initial) runs the i-th weights: it returns their output at each step
// and the states after the last. The result is the same for the stack, both directions side by
// side. Throws ShapeError for initial states of another shape, with the line of the CallSiteScope
// it is called in. An x that is no [batch, time, in] is left to the layers, which refuse it.
Tensors both_ways(const BothWays& stack, const Tensor& x, const Tensors& initial,
                  const std::function<Tensors(const Tensor& x, std::size_t i,
                                              const Tensors& initial)>& run_layer);

}  // namespace ebb::models
