// Training programs that run in either mode and return all that they leave.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {

// Parameters, state and slots by name.
using Values = std::map<std::string, Tensor>;

inline Values values_of(const Parameters& parameters) {
  Values values;
  for (const auto* list : {&parameters.entries(), &parameters.states(), &parameters.slots()})
    for (const auto& [name, tensor] : *list) values[name] = tensor.clone();
  return values;
}

inline std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

inline void check_bits(const Values& a, const Values& b) {
  REQUIRE(names_of(a) == names_of(b));
  for (const auto& [name, value] : a) {
    CAPTURE(name);
    CHECK(bit_equal(value, b.at(name)));
  }
}

// Computes a loss and makes a step with it. A graph calls it once.
using Step = std::function<Tensor(const Parameters&)>;

struct Training {
  std::function<void(const Parameters&)> declare;
  std::vector<Step> steps = {};  // of one round
  DType dtype = DType::f32;
};

inline Values train(bool as_graph, const Training& training, int rounds) {
  InMode mode(as_graph, training.dtype);
  training.declare(mode.parameters);
  std::vector<InMode::Function> steps;
  for (const Step& step : training.steps)
    steps.push_back(mode.function([&] { return step(mode.parameters); }));
  for (int i = 0; i < rounds; ++i)
    for (const InMode::Function& step : steps) step({});
  return mode.values();
}

inline Tensor number(double value) { return Tensor::full({}, value, DType::f64); }

}  // namespace ebb::tests
