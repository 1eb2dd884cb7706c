#include "ebb/models/forecaster.h"

#include "ebb/core/ops/shape.h"

namespace ebb::models {

Forecaster::Forecaster(const Parameters& parameters, std::int64_t in, const LstmOptions& options,
                       const char* file, unsigned line)
    : lstm_(parameters.scope("lstm"), in, options, file, line),
      head_(parameters.scope("head"), options.hidden, 1, Activation::none, file, line) {}

Tensor Forecaster::operator()(const Tensor& x, Phase phase, const char* file, unsigned line) const {
  return head_(last_step({lstm_(x, phase, {}, file, line).sequence, file, line}), file, line);
}

}  // namespace ebb::models
