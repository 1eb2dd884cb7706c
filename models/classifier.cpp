#include "ebb/models/classifier.h"

#include "ebb/models/detail/sizes.h"

namespace ebb::models {

namespace {

std::vector<std::int64_t> sizes(std::int64_t in, std::int64_t classes,
                                const ClassifierOptions& options, CallSite site) {
  require_size("classifier", "layers", options.layers, site, 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(options.layers), options.hidden);
  sizes.insert(sizes.begin(), in);
  sizes.push_back(classes);
  return sizes;
}

}  // namespace

Classifier::Classifier(const Parameters& parameters, std::int64_t in, std::int64_t classes,
                       const ClassifierOptions& options, const char* file, unsigned line)
    : mlp_(parameters, sizes(in, classes, options, {file, line}),
           {.activation = options.activation}, file, line) {}

Tensor Classifier::operator()(const Tensor& x, const char* file, unsigned line) const {
  return mlp_(x, file, line);
}

}  // namespace ebb::models
