// Data sets whose samples say which they are.
#pragma once
#include <numeric>
#include <vector>

#include "ebb/core/data/data_set.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {

// Sample i has the inputs i, i + 1, ... and the target i.
inline DataSet counting(std::int64_t count, std::int64_t columns = 2) {
  std::vector<float> inputs;
  std::vector<std::int32_t> targets(static_cast<std::size_t>(count));
  std::iota(targets.begin(), targets.end(), 0);
  for (const std::int32_t i : targets)
    for (std::int64_t column = 0; column < columns; ++column)
      inputs.push_back(static_cast<float>(i + column));
  return DataSet(Tensor::from(inputs, {count, columns}), Tensor::from(targets, {count}));
}

// Returns the targets. Requires that the inputs belong to them.
inline std::vector<std::int32_t> targets_of(const Tensor& inputs, const Tensor& targets) {
  const auto numbers = targets.to_vector<std::int32_t>();
  const auto values = inputs.to_vector<float>();
  const std::size_t columns = numbers.empty() ? 1 : values.size() / numbers.size();
  bool belong = values.size() == columns * numbers.size();
  for (std::size_t i = 0; belong && i < values.size(); ++i)
    belong = values[i] == static_cast<float>(numbers[i / columns] + static_cast<int>(i % columns));
  REQUIRE(belong);
  return numbers;
}

}  // namespace ebb::tests
