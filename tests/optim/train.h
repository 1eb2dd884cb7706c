// Training programs that run in either mode and return all that they leave.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"

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

inline Values train_eagerly(const Training& training, int rounds) {
  const Parameters parameters(Device::cpu(), Seed{1}, training.dtype);
  training.declare(parameters);
  for (int i = 0; i < rounds; ++i)
    for (const Step& step : training.steps) step(parameters);
  return values_of(parameters);
}

inline Values train_as_graph(const Training& training, int rounds, bool passes = true) {
  Graph graph;
  const Parameters parameters(graph, Seed{1}, training.dtype);
  training.declare(parameters);
  Tensors fetches;
  for (const Step& step : training.steps) fetches.push_back(step(parameters));
  Session session(graph, {.passes = passes});
  session.initialize(parameters);
  for (int i = 0; i < rounds; ++i)
    for (const Tensor& fetch : fetches) session.run(fetch);
  Values values;
  for (const auto* list : {&parameters.entries(), &parameters.states(), &parameters.slots()})
    for (const auto& [name, tensor] : *list) values[name] = session.value(tensor);
  return values;
}

inline Values train(bool as_graph, const Training& training, int rounds) {
  return as_graph ? train_as_graph(training, rounds) : train_eagerly(training, rounds);
}

}  // namespace ebb::tests
