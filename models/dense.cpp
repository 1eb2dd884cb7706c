#include "ebb/models/dense.h"

#include "ebb/core/parameters/declaring.h"
#include "ebb/models/classifier.h"
#include "ebb/models/detail/layers.h"
#include "ebb/models/mlp.h"

namespace ebb::models {

Dense::Dense(const Parameters& parameters, std::int64_t in, std::int64_t out,
             const DenseOptions& options, CallSite site)
    : activation_(options.activation) {
  const ebb::detail::Declaring at(parameters, site);
  require_size("dense", "in", in);
  require_size("dense", "out", out);
  weight_ = parameters.declare("weight", {in, out},
                               is_rectifier(activation_) ? initializers::he_normal(in)
                                                         : initializers::glorot_uniform(in, out));
  if (options.bias) bias_ = parameters.declare("bias", {out}, initializers::zeros());
}

Tensor Dense::operator()(const Tensor& x, CallSite site) const {
  const Operand in(x, in_layer_of(weight_, site));
  return bias_.defined() ? dense(in, weight_, bias_, activation_) : dense(in, weight_, activation_);
}

Mlp::Mlp(const Parameters& parameters, const std::vector<std::int64_t>& sizes,
         const MlpOptions& options, CallSite site) {
  const ebb::detail::Declaring at(parameters, site);
  if (sizes.size() < 2)
    ebb::detail::refuse("mlp", "takes at least two sizes: those of its input and its output");
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

namespace {

std::vector<std::int64_t> sizes(std::int64_t in, std::int64_t classes,
                                const ClassifierOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope at(site);
  require_size("classifier", "layers", options.layers, 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(options.layers), options.hidden);
  sizes.insert(sizes.begin(), in);
  sizes.push_back(classes);
  return sizes;
}

}  // namespace

Classifier::Classifier(const Parameters& parameters, std::int64_t in, std::int64_t classes,
                       const ClassifierOptions& options, CallSite site)
    : mlp_(parameters, sizes(in, classes, options, site), {.activation = options.activation},
           site) {}

Tensor Classifier::operator()(const Tensor& x, CallSite site) const { return mlp_(x, site); }

}  // namespace ebb::models
