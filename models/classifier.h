#pragma once
#include "ebb/models/mlp.h"

namespace ebb::models {

struct ClassifierOptions {
  std::int64_t hidden = 128;                 // units of each hidden layer
  std::int64_t layers = 1;                   // hidden layers
  Activation activation = Activation::relu;  // after each of them
};

// An Mlp that gives each class a score; its loss is softmax_cross_entropy.
class Classifier {
 public:
  // Takes `in` features, gives `classes` scores. Has the parameters of Mlp. Throws as Mlp, and for
  // layers < 0.
  Classifier(const Parameters& parameters, std::int64_t in, std::int64_t classes,
             const ClassifierOptions& options = {}, CallSite site = CallSite::here());

  // x [batch, in] to scores [batch, classes]. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Mlp mlp_;
};

}  // namespace ebb::models
