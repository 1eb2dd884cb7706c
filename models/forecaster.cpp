#include "ebb/models/forecaster.h"

#include "ebb/core/ops/shape.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/random/random.h"

namespace ebb::models {

Forecaster::Forecaster(const Parameters& parameters, std::int64_t in, const LstmOptions& options,
                       CallSite site)
    : Forecaster(ebb::detail::Declaring(parameters, site), parameters, in, options) {}

Forecaster::Forecaster(const ebb::detail::Declaring&, const Parameters& parameters, std::int64_t in,
                       const LstmOptions& options)
    : layer_(parameters.layer()),
      lstm_(parameters.scope("lstm"), in, options),
      head_(parameters.scope("head"), options.hidden, 1) {}

Tensor Forecaster::operator()(const Tensor& x, Phase phase, CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  // Takes the final state, not the last step of the sequence: that one's gradient would be a whole
  // sequence of zeros but for one step.
  const Tensor hidden = lstm_(x, phase).hidden;  // [layers, batch, hidden]
  return head_(select(hidden, 0, -1));
}

}  // namespace ebb::models
