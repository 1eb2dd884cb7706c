#include "ebb/models/gru.h"

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
    const BothWays stack("gru", layers_, dropout_, call);
    Tensors results =
        both_ways(stack, x, {call.hidden},
                  [&](const Tensor& below, std::size_t i, const Tensors& initial) -> Tensors {
                    const GruResult result = gru(below, {&layers_[i], 1},
                                                 {.hidden = initial[0], .lengths = call.lengths});
                    return {result.sequence, result.hidden};
                  });
    return {std::move(results[0]), std::move(results[1])};
  }
  return gru(
      {x, site}, layers_,
      {.dropout = dropout_, .phase = call.phase, .hidden = call.hidden, .lengths = call.lengths});
}

}  // namespace ebb::models
