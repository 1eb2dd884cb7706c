#pragma once

namespace ebb::cuda {

// State of a statistic over some elements. For a variance: mean, sum of squared differences from
// it, and number. For logsumexp: the largest element, and the sum of exponentials of the
// differences from it. For all others: a sum or product.
struct StatisticState {
  double center, sum, count;
};

}  // namespace ebb::cuda
