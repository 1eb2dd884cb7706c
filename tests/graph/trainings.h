// A training with dropout and Adam in either mode, made anew as a restarted program would.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ebb/core/data/data_loader.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/models/dense.h"
#include "ebb/optim/adam.h"

namespace ebb::tests {

class Training {
 public:
  virtual ~Training() = default;
  virtual Tensor step(const Batch& batch) = 0;  // returns the loss
  virtual void save(const std::string& file, const Resumable* loader) = 0;
  virtual void restore(const std::string& file, Resumable* loader) = 0;
  virtual std::vector<float> weights() = 0;

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

 protected:
  struct Model {
    Model(const Parameters& parameters, std::int64_t columns)
        : hidden(parameters.scope("hidden"), columns, 8, Activation::relu),
          out(parameters.scope("out"), 8, 4) {}
    Tensor loss(const Tensor& x, const Tensor& y) const {
      return softmax_cross_entropy(out(dropout(hidden(x), 0.25, Phase::training)), y);
    }
    models::Dense hidden, out;
  };
  const optim::Adam adam_{{.learning_rate = 1e-2}};
};

class GraphTraining final : public Training {
 public:
  GraphTraining(std::int64_t columns, const Device& device)
      : x_(graph_.placeholder("x", DType::f32, {-1, columns})),
        y_(graph_.placeholder("y", DType::i32, {-1})),
        parameters_(graph_, Seed{7}),
        train_(adam_.minimize(Model(parameters_, columns).loss(x_, y_), parameters_)),
        session_(graph_, {.device = device}) {
    session_.initialize(parameters_);
  }
  Tensor step(const Batch& batch) override {
    return session_.run(train_, {{x_, batch.input}, {y_, batch.target}});
  }
  void save(const std::string& file, const Resumable* loader) override {
    loader ? session_.save(file, *loader) : session_.save(file);
  }
  void restore(const std::string& file, Resumable* loader) override {
    loader ? session_.restore(file, *loader) : session_.restore(file);
  }
  std::vector<float> weights() override {
    return session_.value(parameters_["hidden.weight"]).to_vector<float>();
  }

 private:
  Graph graph_;
  const Tensor x_, y_;
  const Parameters parameters_;
  const Tensor train_;
  Session session_;
};

class EagerTraining final : public Training {
 public:
  EagerTraining(std::int64_t columns, const Device& device)
      : parameters_(device, Seed{7}), model_(parameters_, columns) {}
  Tensor step(const Batch& batch) override {
    return adam_.minimize(model_.loss(batch.input, batch.target), parameters_);
  }
  void save(const std::string& file, const Resumable* loader) override {
    loader ? parameters_.save(file, *loader) : parameters_.save(file);
  }
  void restore(const std::string& file, Resumable* loader) override {
    loader ? parameters_.load(file, *loader) : parameters_.load(file);
  }
  std::vector<float> weights() override { return parameters_["hidden.weight"].to_vector<float>(); }

 private:
  const Parameters parameters_;
  const Model model_;
};

inline constexpr const char* kModes[] = {"graph", "eager"};
inline std::unique_ptr<Training> make_training(const std::string& mode, std::int64_t columns,
                                               const Device& device) {
  if (mode == "graph") return std::make_unique<GraphTraining>(columns, device);
  return std::make_unique<EagerTraining>(columns, device);
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
