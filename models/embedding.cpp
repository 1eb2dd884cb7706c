#include "ebb/models/embedding.h"

#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {

Embedding::Embedding(const Parameters& parameters, std::int64_t rows, std::int64_t features,
                     CallSite site) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("embedding", "rows", rows);
  require_size("embedding", "features", features);
  weight_ = parameters.declare("weight", {rows, features}, initializers::normal(0, 1));
}

Tensor Embedding::operator()(const Tensor& indices, CallSite site) const {
  return embedding({weight_, site}, {indices, site});
}

}  // namespace ebb::models
