#include <algorithm>

#include "ebb/core/ops/loss.h"
#include "ebb/examples/common/problem.h"
#include "ebb/models/classifier.h"

namespace examples {

namespace {

using namespace ebb;

class Classification final : public Problem {
 public:
  Classification(std::pair<DataSet, DataSet> parts, std::int64_t classes, const Options& options)
      : Problem(std::move(parts.first), std::move(parts.second)),
        features_(training().inputs().shape()[1]),
        classes_(classes),
        options_({.hidden = options.hidden, .layers = options.layers}) {}

  std::string metric() const override { return "accuracy"; }
  std::string describe() const override {
    return std::to_string(training().size()) + " samples of " + std::to_string(features_) +
           " features in " + std::to_string(classes_) + " classes, " +
           std::to_string(held_out().size()) + " held out";
  }
  Model build(const Parameters& parameters) const override {
    const models::Classifier classifier(parameters, features_, classes_, options_);
    return [classifier](const Tensor& x, Phase) { return classifier(x); };
  }
  Tensor loss(const Tensor& scores, const Tensor& labels) const override {
    return softmax_cross_entropy(scores, labels);
  }

  double add_up(const Tensor& scores, const Tensor& labels) const override {
    const std::vector<float> values = scores.to_vector<float>();
    const std::vector<std::int32_t> expected = labels.to_vector<std::int32_t>();
    double right = 0;
    for (std::size_t row = 0; row < expected.size(); ++row) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(row) * classes_;
      if (std::max_element(first, first + classes_) - first == expected[row]) ++right;
    }
    return right;
  }
  double summarize(double right, std::int64_t rows) const override {
    return right / static_cast<double>(rows);
  }

 private:
  const std::int64_t features_, classes_;
  const models::ClassifierOptions options_;
};

DataSet read(const std::string& data) {
  const std::size_t comma = data.find(',');
  return comma == std::string::npos ? DataSet::csv(data, {.label = last_column(data)})
                                    : DataSet::idx(data.substr(0, comma), data.substr(comma + 1));
}

}  // namespace

std::unique_ptr<Problem> classification(const Options& options) {
  const DataSet all = read(options.data);
  const std::vector<std::int32_t> labels = all.targets().to_vector<std::int32_t>();
  const auto [least, most] = std::minmax_element(labels.begin(), labels.end());
  if (*least < 0 || *most > 9999)
    throw Error(options.data + ": classes are numbered from 0 to 9999, and one is " +
                std::to_string(*least < 0 ? *least : *most));

  auto [training, held_out] = all.split(0.2, Seed{1});  // the same fifth for every --seed
  const std::vector<float> values = training.inputs().to_vector<float>();
  const float largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const double factor = largest > 0 ? 1.0 / static_cast<double>(largest) : 1;  // pixels: 1/16
  return std::make_unique<Classification>(
      std::pair(training.scaled(factor), held_out.scaled(factor)), *most + 1, options);
}

}  // namespace examples
