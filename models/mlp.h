#pragma once
#include <vector>

#include "ebb/models/dense.h"

namespace ebb::models {

struct MlpOptions {
  Activation activation = Activation::relu;  // after every layer but the last
};

// Fully connected layers one after the other. The layers of {64, 128, 10} are named "0" (64 to 128)
// and "1" (128 to 10), with Dense's parameters in each.
class Mlp {
 public:
  // Throws Error for fewer than two sizes, and as Dense.
  Mlp(const Parameters& parameters, const std::vector<std::int64_t>& sizes,
      const MlpOptions& options = {}, CallSite site = CallSite::here());

  // x [..., sizes.front()] to [..., sizes.back()]. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  std::vector<Dense> layers_;
};

}  // namespace ebb::models
