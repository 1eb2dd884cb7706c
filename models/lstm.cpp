#include "ebb/models/lstm.h"

#include <cmath>

#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/sizes.h"

namespace ebb::models {

Lstm::Lstm(const Parameters& parameters, std::int64_t in, const LstmOptions& options, CallSite site)
    : dropout_(options.dropout) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("lstm", "in", in);
  require_size("lstm", "hidden", options.hidden);
  require_size("lstm", "layers", options.layers);
  if (!(dropout_ >= 0 && dropout_ < 1))
    throw Error(ebb::detail::message(
        "lstm", "dropout = " + std::to_string(dropout_) + " is outside [0, 1)", site));
  const std::int64_t gates = 4 * options.hidden;
  const double bound = 1 / std::sqrt(static_cast<double>(options.hidden));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string name = std::to_string(layer) + '.';
    const auto declare = [&](const char* what, const Shape& shape, const Initializer& initializer) {
      return parameters.declare(name + what, shape, initializer);
    };
    layers_.push_back({
        .input = declare("input", {layer ? options.hidden : in, gates},
                         initializers::uniform(-bound, bound)),
        .recurrent =
            declare("recurrent", {options.hidden, gates}, initializers::uniform(-bound, bound)),
        .bias = declare("bias", {gates}, initializers::lstm_bias(bound)),
    });
  }
}

LstmOutput Lstm::operator()(const Tensor& x, Phase phase, const LstmState& initial,
                            CallSite site) const {
  LstmResult result =
      lstm({x, site}, layers_,
           {.dropout = dropout_, .phase = phase, .hidden = initial.hidden, .cell = initial.cell});
  return {std::move(result.sequence), std::move(result.hidden), std::move(result.cell)};
}

}  // namespace ebb::models
