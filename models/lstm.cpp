#include "ebb/models/lstm.h"

#include "ebb/models/detail/recurrent.h"

namespace ebb::models {

Lstm::Lstm(const Parameters& parameters, std::int64_t in, const LstmOptions& options, CallSite site)
    : layers_(declare_layers<LstmWeights>("lstm", parameters, in, options, 4,
                                          initializers::lstm_bias, site)),
      dropout_(options.dropout),
      is_bidirectional_(options.bidirectional) {}

LstmOutput Lstm::operator()(const Tensor& x, const LstmCall& call, CallSite site) const {
  if (is_bidirectional_) {
    const ebb::detail::CallSiteScope scope(in_layer_of(layers_[0].input, site));
    const BothWays stack("lstm", layers_, dropout_, call);
    Tensors results =
        both_ways(stack, x, {call.initial.hidden, call.initial.cell},
                  [&](const Tensor& below, std::size_t i, const Tensors& initial) -> Tensors {
                    const LstmResult result =
                        lstm(below, {&layers_[i], 1},
                             {.hidden = initial[0], .cell = initial[1], .lengths = call.lengths});
                    return {result.sequence, result.hidden, result.cell};
                  });
    return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
  }
  LstmResult result = lstm({x, site}, layers_,
                           {.dropout = dropout_,
                            .phase = call.phase,
                            .hidden = call.initial.hidden,
                            .cell = call.initial.cell,
                            .lengths = call.lengths});
  return {std::move(result.sequence), std::move(result.hidden), std::move(result.cell)};
}

}  // namespace ebb::models
