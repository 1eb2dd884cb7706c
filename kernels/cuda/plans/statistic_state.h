#pragma once

namespace ebb::cuda {

// What is known of some elements: how many they are, with their mean and the sum of their squared
// differences from it; or the largest of them and the sum of the exponentials of their differences
// from that; or a sum.
struct StatisticState {
  double center, sum, count;
};

}  // namespace ebb::cuda
