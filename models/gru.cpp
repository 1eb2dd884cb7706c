#include "ebb/models/gru.h"

#include "ebb/core/ops/layout.h"
#include "ebb/models/detail/recurrent.h"

namespace ebb::models {

Gru::Gru(const Parameters& parameters, std::int64_t in, const GruOptions& options, CallSite site)
    : layers_(declare_layers<GruWeights>(
          "gru", parameters, in, options, 3,
          [](double bound) { return initializers::uniform(-bound, bound); }, site)),
      dropout_(options.dropout),
      is_bidirectional_(options.bidirectional) {}

GruOutput Gru::operator()(const Tensor& x, const GruCall& call, CallSite site) const {
  if (is_bidirectional_) {
    const ebb::detail::CallSiteScope scope(in_layer_of(layers_[0].input, site));
    return in_both_ways(x, call);
  }
  return gru(
      {x, site}, layers_,
      {.dropout = dropout_, .phase = call.phase, .hidden = call.hidden, .lengths = call.lengths});
}

GruOutput Gru::in_both_ways(const Tensor& x, const GruCall& call) const {
  require_states("gru", "hidden", call.hidden, x, layers_.size(),
                 layers_[0].recurrent.shape().dim(0));
  Tensors hidden;
  const Tensor sequence = both_ways(
      x, layers_.size() / 2, call.lengths, dropout_, call.phase,
      [&](const Tensor& below, std::size_t i) {
        GruResult result = gru(below, {&layers_[i], 1},
                               {.hidden = initial_state(call.hidden, i), .lengths = call.lengths});
        hidden.push_back(std::move(result.hidden));
        return std::move(result.sequence);
      });
  return {sequence, concat(hidden)};
}

}  // namespace ebb::models
