// The bundled models with a loss each, and the ways to train them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"

namespace ebb::tests {

// Computes the loss of a batch.
using Loss = std::function<Tensor(const Tensor& x, const Tensor& y)>;

// A model with its loss, and the specs of its inputs and targets.
struct BundledModel {
  std::string name;
  Spec input, target;  // of one sample, without the batch
  // Declares the parameters; returns the function that computes the loss in training.
  std::function<Loss(const Parameters&)> make;
};

// Mlp, Forecaster, Classifier and an Mlp with a BatchNorm, all with dropout.
std::vector<BundledModel> bundled_models();

// Shape and values of `rows` samples; the values are the same in every call.
Shape with_rows(const Spec& sample, std::int64_t rows);
Tensor batch_of(const Spec& sample, std::int64_t rows, const Device& device);

enum class Method {
  minimize,
  minimize_own_rule,  // a rule in public operators, whose new values take memory
  accumulate,         // an update in every second step
  backward,           // backward, step, zero_grad: eager only
};
inline constexpr Method kMethods[] = {Method::minimize, Method::minimize_own_rule,
                                      Method::accumulate, Method::backward};
inline const char* name(Method method) noexcept {
  constexpr const char* kNames[] = {"minimize", "minimize by a rule of one's own", "accumulate",
                                    "backward"};
  return kNames[static_cast<std::size_t>(method)];
}

inline constexpr std::int64_t kBatchRows = 6;  // two such batches fill an accumulator

// Makes a step; returns the loss.
Tensor train(Method method, const Tensor& loss, const Tensor& x, const Parameters& parameters);

}  // namespace ebb::tests
