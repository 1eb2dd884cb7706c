// A training with dropout and Adam in either mode, made anew as a restarted program would.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {

class Training {
 public:
  Training(bool as_graph, std::int64_t columns, const Device& device)
      : mode_(as_graph, DType::f32, Seed{7}, {.device = device}),
        hidden_(mode_.parameters.scope("hidden"), columns, 8, Activation::relu),
        out_(mode_.parameters.scope("out"), 8, 4),
        step_(mode_.function(
            {{DType::f32, {-1, columns}}, {DType::i32, {-1}}},
            [this](const Tensors& in) -> Tensors {
              const Tensor scores = out_(dropout(hidden_(in[0]), 0.25, Phase::training));
              return {optim::Adam({.learning_rate = 1e-2})
                          .minimize(softmax_cross_entropy(scores, in[1]), mode_.parameters)};
            })) {}

  // Returns the loss.
  Tensor step(const Batch& batch) { return step_({batch.input, batch.target})[0]; }
  void save(const std::string& file, const Resumable* loader) {
    loader ? mode_.save(file, *loader) : mode_.save(file);
  }
  void restore(const std::string& file, Resumable* loader) {
    loader ? mode_.load(file, *loader) : mode_.load(file);
  }
  std::vector<float> weights() { return mode_["hidden.weight"].to_vector<float>(); }

  // Returns the losses of `steps` steps, over as many passes as they take.
  std::vector<float> train(DataLoader& loader, std::size_t steps) {
    std::vector<float> losses;
    while (losses.size() < steps)
      for (const Batch& batch : loader) {
        losses.push_back(step(batch).item<float>());
        if (losses.size() == steps) break;
      }
    return losses;
  }

 private:
  InMode mode_;
  const models::Dense hidden_, out_;
  const InMode::Function step_;
};

inline constexpr const char* kModes[] = {"graph", "eager"};
inline std::unique_ptr<Training> make_training(const std::string& mode, std::int64_t columns,
                                               const Device& device) {
  return std::make_unique<Training>(mode == "graph", columns, device);
}

inline DataSet samples(std::int64_t count, std::int64_t columns) {
  std::mt19937 random(3);
  std::vector<float> values(static_cast<std::size_t>(count * columns));
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % 4);
  return DataSet(Tensor::from(values, {count, columns}), Tensor::from(labels, {count}));
}

}  // namespace ebb::tests
