// How good forecasts are, computed on the host in f64, from tensors with values on any device.
#pragma once
#include <cstdint>

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
