#include "ebb/models/classifier.h"

#include "ebb/models/detail/sizes.h"

namespace ebb::models {

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
