// How good forecasts are, computed on the host in f64, from tensors with values on any device.
#pragma once
#include <cstdint>
#include <optional>

#include "ebb/core/tensor/tensor.h"

namespace ebb::metrics {

// Of classes: scores [n, classes] in any floating dtype, labels [n] in i32 or i64, n at least 1.
// All throw ShapeError for other shapes, Error for a label that is no class, other dtypes and
// tensors without values.

// The part of the rows whose label has the highest score; of equal ones the first counts. A label
// whose score is NaN is wrong.
double accuracy(const Tensor& scores, const Tensor& labels, CallSite site = CallSite::here());
// The part of the rows whose label is among the k highest scores. Throws Error for k < 1.
double top_k_accuracy(const Tensor& scores, const Tensor& labels, std::int64_t k,
                      CallSite site = CallSite::here());
// How often label i got its highest score in j: i64 [classes, classes] on the CPU. A row that has
// nothing but NaN counts as class 0.
Tensor confusion_matrix(const Tensor& scores, const Tensor& labels,
                        CallSite site = CallSite::here());

struct ClassMetricOptions {
  std::optional<std::int64_t> positive = {};  // of this class; none: of all classes
};

// Of what was taken for a class the part that is of it, and of what is of a class the part that was
// taken for it; 2 precision recall / (precision + recall). What a part of nothing is counts as 0.
// Of all classes, the mean over those that occur, among labels or as somebody's highest score: all
// as sklearn's, there average="binary" with pos_label, and "macro". The highest score is that of
// confusion_matrix. Throw Error for a class that is none.
double precision(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
                 CallSite site = CallSite::here());
double recall(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
              CallSite site = CallSite::here());
double f1(const Tensor& scores, const Tensor& labels, const ClassMetricOptions& options = {},
          CallSite site = CallSite::here());

// Of two classes: scores [n] in any floating dtype, the higher the likelier class 1, labels [n] of
// 0 and 1 in any dtype. The area under the receiver operating characteristic: how often one of
// class 1 scores above one of class 0, equal ones counting half. Throws Error where one of the
// classes has no label, a label is neither, or a score is NaN.
double roc_auc(const Tensor& scores, const Tensor& labels, CallSite site = CallSite::here());

// Of numbers: forecasts and targets of one shape, at least one element, in floating dtypes. Throw
// ShapeError for different shapes, Error for other dtypes and tensors without values.

// The mean of |forecast - target|.
double mae(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());
// The square root of the mean of (forecast - target)^2.
double rmse(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());
// 1 - sum of (target - forecast)^2 / sum of (target - mean target)^2, over all elements: 1 where
// all forecasts are right, 0 where they are as good as the mean. Of targets that are all the same:
// 1 where all are right, else -infinity.
double r2(const Tensor& forecasts, const Tensor& targets, CallSite site = CallSite::here());

}  // namespace ebb::metrics
