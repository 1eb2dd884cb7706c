// Measures of how good forecasts are, computed on the host in f64 from tensors on any device.
#pragma once
#include <cstdint>
#include <optional>

#include "ebb/core/tensor/tensor.h"

namespace ebb::metrics {

// Classification: scores [n, classes] in any floating dtype, labels [n] in i32 or i64, n at least
// 1. All throw ShapeError for other shapes, and Error for a label that is no class, other dtypes
// and tensors without values.

// Share of rows whose label has the highest score; of equal scores the first counts. A label whose
// score is NaN is wrong.
double accuracy(const Tensor& scores, const Tensor& labels, CallSite site = CallSite::here());
// Share of rows whose label is among the k highest scores. Throws Error for k < 1.
double top_k_accuracy(const Tensor& scores, const Tensor& labels, std::int64_t k,
                      CallSite site = CallSite::here());
// Counts rows by label i and highest score j: i64 [classes, classes] on the CPU. A row of NaN
// counts as predicted class 0.
Tensor confusion_matrix(const Tensor& scores, const Tensor& labels,
                        CallSite site = CallSite::here());

struct ClassMetricOptions {
  std::optional<std::int64_t> positive = {};  // for this class; none: mean over classes
};

// Precision: the share of rows predicted as a class that belong to it. Recall: the share of a
// class's rows that are predicted as it. F1: 2 precision recall / (precision + recall). 0 / 0
// counts as 0. Without `positive`, the mean over the classes that occur as a label or a prediction.
// All as in sklearn: average="binary" with pos_label, and "macro". The prediction is the highest
// score, as in confusion_matrix. Throw Error for a `positive` that is no class.
double precision(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
                 CallSite site = CallSite::here());
double recall(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
              CallSite site = CallSite::here());
double f1(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
          CallSite site = CallSite::here());

// Area under the receiver operating characteristic of two classes: how often a sample of class 1
// scores above a sample of class 0, equal scores counting half. Scores [n] in any floating dtype,
// higher for class 1; labels [n] of 0 and 1 in any dtype. Throws Error if a class has no sample, a
// label is neither 0 nor 1, or a score is NaN.
double roc_auc(const Tensor& scores, const Tensor& labels, CallSite site = CallSite::here());

// Regression: forecasts and targets of one shape, at least one element, in floating dtypes. Throw
// ShapeError for different shapes, Error for other dtypes and tensors without values.

// Mean of |forecast - target|.
double mae(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());
// Square root of the mean of (forecast - target)^2.
double rmse(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());
// 1 - sum of (target - forecast)^2 / sum of (target - mean target)^2, over all elements: 1 for
// perfect forecasts, 0 for forecasts as good as the mean. If all targets are equal: 1 for perfect
// forecasts, else -infinity.
double r2(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());

}  // namespace ebb::metrics
