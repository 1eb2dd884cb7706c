#include "ebb/models/mlp.h"

#include "ebb/core/base/error.h"
#include "ebb/core/parameters/declaring.h"

namespace ebb::models {

Mlp::Mlp(const Parameters& parameters, const std::vector<std::int64_t>& sizes,
         const MlpOptions& options, CallSite site) {
  const ebb::detail::Declaring at(parameters, site);
  if (sizes.size() < 2)
    throw Error(ebb::detail::message(
        "mlp", "takes at least two sizes: those of its input and its output", site));
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    layers_.emplace_back(parameters.scope(std::to_string(i)), sizes[i], sizes[i + 1],
                         i + 2 < sizes.size() ? options.activation : Activation::none);
}

Tensor Mlp::operator()(const Tensor& x, CallSite site) const {
  const ebb::detail::CallSiteScope at(site);
  Tensor y = x;
  for (const Dense& layer : layers_) y = layer(y);
  return y;
}

}  // namespace ebb::models
