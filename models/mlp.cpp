#include "ebb/models/mlp.h"

#include "ebb/core/error.h"

namespace ebb::models {

Mlp::Mlp(const Parameters& parameters, const std::vector<std::int64_t>& sizes,
         const MlpOptions& options, const char* file, unsigned line) {
  if (sizes.size() < 2)
    throw Error(ebb::detail::message(
        "mlp", "takes at least two sizes: those of its input and its output", {file, line}));
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    layers_.emplace_back(parameters.scope(std::to_string(i)), sizes[i], sizes[i + 1],
                         i + 2 < sizes.size() ? options.activation : Activation::none, file, line);
}

Tensor Mlp::operator()(const Tensor& x, const char* file, unsigned line) const {
  Tensor y = x;
  for (const Dense& layer : layers_) y = layer(y, file, line);
  return y;
}

}  // namespace ebb::models
