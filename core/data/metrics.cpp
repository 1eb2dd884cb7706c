#include "ebb/core/data/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/host_values.h"

namespace ebb::metrics {

namespace {

using detail::refuse;

std::vector<double> numbers(const Tensor& tensor, const char* what, const char* which) {
  detail::require_values(tensor, what, which);
  if (!is_floating(tensor.dtype()))
    refuse(what, std::string("takes ") + which + " of a floating dtype, not " + tensor.to_string());
  return tensor.to_vector<double>(detail::entry());
}

struct Classes {
  Classes(const Tensor& from, const Tensor& to, const char* what)
      : scores(numbers(from, what, "the scores")) {
    detail::require_values(to, what, "the labels");
    if (from.rank() != 2 || to.rank() != 1 || from.size(0) != to.size(0) || from.size(0) == 0 ||
        from.size(1) == 0)
      refuse<ShapeError>(what, "takes scores [n, classes] and labels [n], n at least 1, not " +
                                   from.to_string() + " and " + to.to_string());
    count = static_cast<std::size_t>(from.size(1));
    if (to.dtype() != DType::i32 && to.dtype() != DType::i64)
      refuse(what, "takes labels of i32 or i64, not " + to.to_string());
    labels = to.to_vector<std::int64_t>(detail::entry());
    for (const std::int64_t label : labels)
      if (label < 0 || label >= from.size(1))
        refuse(what, "label " + std::to_string(label) + " is none of " +
                         std::to_string(from.size(1)) + " classes");
  }
  const double* row(std::size_t i) const { return scores.data() + i * count; }
  std::size_t label(std::size_t i) const { return static_cast<std::size_t>(labels[i]); }

  std::vector<double> scores;
  std::vector<std::int64_t> labels;
  std::size_t count = 0;
};

double part_among(const Tensor& scores, const Tensor& labels, std::int64_t k, const char* what) {
  const Classes classes(scores, labels, what);
  std::size_t right = 0;
  for (std::size_t i = 0; i < classes.labels.size(); ++i) {
    const double* const row = classes.row(i);
    const std::size_t label = classes.label(i);
    std::int64_t before = 0;
    for (std::size_t j = 0; j < classes.count; ++j)
      before += row[j] > row[label] || (j < label && row[j] == row[label]);
    right += before < k && !std::isnan(row[label]);
  }
  return static_cast<double>(right) / static_cast<double>(classes.labels.size());
}

// The class with the highest score; 0 if all are NaN.
std::size_t best_of(const Classes& classes, std::size_t i) {
  const double* const row = classes.row(i);
  std::size_t best = 0;
  for (std::size_t j = 1; j < classes.count; ++j)
    if (row[j] > row[best] || (std::isnan(row[best]) && !std::isnan(row[j]))) best = j;
  return best;
}

// Counts for one class: correct predictions, labels, predictions.
struct Hits {
  double right = 0, labels = 0, taken = 0;
};

double mean_over_classes(const Tensor& scores, const Tensor& labels,
                         const ClassMetricOptions& options, const char* what,
                         double (*figure)(const Hits&)) {
  const Classes classes(scores, labels, what);
  if (options.positive && (*options.positive < 0 || *options.positive >= scores.size(1)))
    refuse(what, "class " + std::to_string(*options.positive) + " is none of " +
                     std::to_string(classes.count));
  std::vector<Hits> hits(classes.count);
  for (std::size_t i = 0; i < classes.labels.size(); ++i) {
    const std::size_t best = best_of(classes, i), label = classes.label(i);
    ++hits[label].labels;
    ++hits[best].taken;
    if (best == label) ++hits[label].right;
  }
  if (options.positive) return figure(hits[static_cast<std::size_t>(*options.positive)]);
  double sum = 0, occur = 0;
  for (const Hits& of_class : hits)
    if (of_class.labels + of_class.taken > 0) {
      sum += figure(of_class);
      ++occur;
    }
  return sum / occur;
}

double part(double of, double whole) { return whole == 0 ? 0 : of / whole; }

// Sums function(forecast, target) over all elements.
struct Pairs {
  Pairs(const Tensor& a, const Tensor& b, const char* what)
      : forecasts(numbers(a, what, "forecasts")), targets(numbers(b, what, "targets")) {
    if (!(a.shape() == b.shape()) || forecasts.empty())
      refuse<ShapeError>(what, "takes forecasts and targets of one shape, with elements, not " +
                                   a.to_string() + " and " + b.to_string());
  }
  template <class Function>
  double mean(const Function& function) const {
    double sum = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) sum += function(forecasts[i], targets[i]);
    return sum / static_cast<double>(targets.size());
  }
  double mean_square() const {
    return mean([](double a, double b) { return (a - b) * (a - b); });
  }
  std::vector<double> forecasts, targets;
};

}  // namespace

double accuracy(const Tensor& scores, const Tensor& labels, CallSite site) {
  const detail::CallSiteScope at(site);
  return part_among(scores, labels, 1, "accuracy");
}

double top_k_accuracy(const Tensor& scores, const Tensor& labels, std::int64_t k, CallSite site) {
  const detail::CallSiteScope at(site);
  if (k < 1) refuse("top_k_accuracy", "takes k of at least 1, not " + std::to_string(k));
  return part_among(scores, labels, k, "top_k_accuracy");
}

Tensor confusion_matrix(const Tensor& scores, const Tensor& labels, CallSite site) {
  const detail::CallSiteScope at(site);
  const Classes classes(scores, labels, "confusion_matrix");
  std::vector<std::int64_t> counts(classes.count * classes.count, 0);
  for (std::size_t i = 0; i < classes.labels.size(); ++i)
    ++counts[classes.label(i) * classes.count + best_of(classes, i)];
  return Tensor::from(counts, {scores.size(1), scores.size(1)});
}

double precision(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options,
                 CallSite site) {
  const detail::CallSiteScope at(site);
  return mean_over_classes(scores, labels, options, "precision",
                           [](const Hits& h) { return part(h.right, h.taken); });
}

double recall(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options,
              CallSite site) {
  const detail::CallSiteScope at(site);
  return mean_over_classes(scores, labels, options, "recall",
                           [](const Hits& h) { return part(h.right, h.labels); });
}

double f1(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options,
          CallSite site) {
  const detail::CallSiteScope at(site);
  return mean_over_classes(scores, labels, options, "f1",
                           [](const Hits& h) { return part(2 * h.right, h.labels + h.taken); });
}

double roc_auc(const Tensor& scores, const Tensor& labels, CallSite site) {
  const detail::CallSiteScope at(site);
  const std::vector<double> all = numbers(scores, "roc_auc", "the scores");
  detail::require_values(labels, "roc_auc", "the labels");
  if (scores.rank() != 1 || labels.rank() != 1 || scores.size(0) != labels.size(0))
    refuse<ShapeError>("roc_auc", "takes scores [n] and labels [n], not " + scores.to_string() +
                                      " and " + labels.to_string());
  const std::vector<double> classes = labels.to_vector<double>(detail::entry());
  std::vector<std::pair<double, bool>> ordered;
  std::size_t ones = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(all[i])) refuse("roc_auc", "score " + std::to_string(i) + " is NaN");
    if (classes[i] != 0 && classes[i] != 1)
      refuse("roc_auc", "label " + std::to_string(i) + " is neither 0 nor 1");
    ordered.emplace_back(all[i], classes[i] == 1);
    ones += classes[i] == 1;
  }
  const std::size_t zeros = all.size() - ones;
  if (ones == 0 || zeros == 0)
    refuse("roc_auc", "takes labels of both classes, not of class " +
                          std::string(ones == 0 ? "0" : "1") + " alone");
  std::sort(ordered.begin(), ordered.end());
  // For each score: pairs of its ones with all zeros below it, and half the pairs with equal zeros.
  double above = 0, below = 0;
  for (std::size_t i = 0; i < ordered.size();) {
    double equal_zeros = 0, equal_ones = 0;
    const double score = ordered[i].first;
    for (; i < ordered.size() && ordered[i].first == score; ++i)
      ++(ordered[i].second ? equal_ones : equal_zeros);
    above += equal_ones * (below + equal_zeros / 2);
    below += equal_zeros;
  }
  return above / (static_cast<double>(ones) * static_cast<double>(zeros));
}

double mae(const Tensor& forecasts, const Tensor& targets, CallSite site) {
  const detail::CallSiteScope at(site);
  return Pairs(forecasts, targets, "mae").mean([](double a, double b) { return std::abs(a - b); });
}

double rmse(const Tensor& forecasts, const Tensor& targets, CallSite site) {
  const detail::CallSiteScope at(site);
  return std::sqrt(Pairs(forecasts, targets, "rmse").mean_square());
}

double r2(const Tensor& forecasts, const Tensor& targets, CallSite site) {
  const detail::CallSiteScope at(site);
  const Pairs pairs(forecasts, targets, "r2");
  const bool all_same = std::all_of(pairs.targets.begin(), pairs.targets.end(),
                                    [&](double value) { return value == pairs.targets[0]; });
  const double error = pairs.mean_square();
  if (all_same) return error == 0 ? 1 : -std::numeric_limits<double>::infinity();
  const double mean = pairs.mean([](double, double target) { return target; });
  return 1 - error / pairs.mean([&](double, double b) { return (b - mean) * (b - mean); });
}

}  // namespace ebb::metrics
