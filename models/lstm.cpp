#include "ebb/models/lstm.h"

#include "ebb/core/ops/layout.h"
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
    return in_both_ways(x, call);
  }
  LstmResult result = lstm({x, site}, layers_,
                           {.dropout = dropout_,
                            .phase = call.phase,
                            .hidden = call.initial.hidden,
                            .cell = call.initial.cell,
                            .lengths = call.lengths});
  return {std::move(result.sequence), std::move(result.hidden), std::move(result.cell)};
}

LstmOutput Lstm::in_both_ways(const Tensor& x, const LstmCall& call) const {
  const std::int64_t units = layers_[0].recurrent.shape().dim(0);
  require_states("lstm", "hidden", call.initial.hidden, x, layers_.size(), units);
  require_states("lstm", "cell", call.initial.cell, x, layers_.size(), units);
  Tensors hidden, cell;
  const Tensor sequence = both_ways(x, layers_.size() / 2, call.lengths, dropout_, call.phase,
                                    [&](const Tensor& below, std::size_t i) {
                                      LstmResult result =
                                          lstm(below, {&layers_[i], 1},
                                               {.hidden = initial_state(call.initial.hidden, i),
                                                .cell = initial_state(call.initial.cell, i),
                                                .lengths = call.lengths});
                                      hidden.push_back(std::move(result.hidden));
                                      cell.push_back(std::move(result.cell));
                                      return std::move(result.sequence);
                                    });
  return {sequence, concat(hidden), concat(cell)};
}

}  // namespace ebb::models
