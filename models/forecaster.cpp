#include "ebb/models/forecaster.h"

#include "ebb/core/ops/shape.h"

namespace ebb::models {

Forecaster::Forecaster(const Parameters& parameters, std::int64_t in, const LstmOptions& options,
                       const char* file, unsigned line)
    : lstm_(parameters.scope("lstm"), in, options, file, line),
      head_(parameters.scope("head"), options.hidden, 1, Activation::none, file, line) {}

Tensor Forecaster::operator()(const Tensor& x, Phase phase, const char* file, unsigned line) const {
  // Not the last step of the sequence, whose gradient would be zeros but for that step.
  const Tensor hidden = lstm_(x, phase, {}, file, line).hidden;  // [layers, batch, hidden]
  return head_(select({hidden, file, line}, 0, -1), file, line);
}

}  // namespace ebb::models
