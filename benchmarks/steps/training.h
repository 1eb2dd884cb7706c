// Training steps, in each mode.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "ebb/benchmarks/steps/models.h"
#include "ebb/benchmarks/steps/worker.h"
#include "ebb/core/memory/memory.h"
#include "ebb/graph/compile.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adam.h"

namespace ebb::benchmarks {

class Training : public Worker {
 public:
  Training(const InputFile& input, const Device& device)
      : device_(device),
        world_(input.world()),
        xs_(input.batches("x", device)),
        ys_(input.batches("y", device)),
        data_bytes_(memory::stats(device).allocated.current) {}

  Tensor step() override {
    const std::size_t i = steps_++ % xs_.size();
    return train(xs_[i], ys_[i]);
  }

  // Memory of one more step. The batches, which belong to the caller in both frameworks, count only
  // in the reserved bytes.
  nlohmann::ordered_json memory() {
    memory::reset_peaks(device_);
    value_of(step());
    const memory::Stats stats = memory::stats(device_);
    const auto held = [&](memory::Category category) {
      return stats.by_category[static_cast<std::size_t>(category)].current;
    };
    const std::size_t held_bytes =
        held(memory::Category::parameter) + held(memory::Category::optimizer_state);
    const std::size_t peak_bytes = stats.allocated.peak - data_bytes_;
    nlohmann::ordered_json at_peak;
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
      at_peak[memory::name(static_cast<memory::Category>(i))] = stats.at_peak[i];
    return {{"peak_bytes", peak_bytes},
            {"held_bytes", held_bytes},
            {"step_bytes", peak_bytes - held_bytes},
            {"reserved_bytes", stats.reserved.peak},
            {"at_peak", at_peak}};
  }

 protected:
  virtual Tensor train(const Tensor& x, const Tensor& y) = 0;
  optim::Adam adam() const { return optim::Adam({.learning_rate = 1e-4, .world = world_}); }
  const Device& device() const noexcept { return device_; }
  const Tensor& first_x() const noexcept { return xs_[0]; }
  const Tensor& first_y() const noexcept { return ys_[0]; }

 private:
  const Device device_;
  const std::optional<distributed::World> world_;
  const std::vector<Tensor> xs_, ys_;
  const std::size_t data_bytes_;
  std::size_t steps_ = 0;
};

class EagerTraining : public Training {
 public:
  EagerTraining(const Model& model, const InputFile& input, const Device& device)
      : Training(input, device),
        parameters_(device, {}, {.dtype = input.dtype(), .world = input.world()}),
        loss_(model.build(parameters_)) {
    parameters_.load(input.path());
  }

 protected:
  Tensor train(const Tensor& x, const Tensor& y) override {
    return adam_.minimize(loss_(x, y), parameters_);
  }

 private:
  const Parameters parameters_;
  const Model::Loss loss_;
  const optim::Adam adam_ = adam();
};

// The eager step, compiled.
class CompiledTraining final : public EagerTraining {
 public:
  using EagerTraining::EagerTraining;

 private:
  Tensor train(const Tensor& x, const Tensor& y) override { return step_(x, y); }
  CompiledStep<std::function<Tensor(Tensor, Tensor)>> step_ =
      compile(std::function([this](Tensor x, Tensor y) { return EagerTraining::train(x, y); }));
};

class GraphTraining final : public Training {
 public:
  GraphTraining(const Model& model, const InputFile& input, const Device& device)
      : Training(input, device),
        parameters_(graph_, {}, {.dtype = input.dtype(), .world = input.world()}) {
    x_ = graph_.placeholder("x", first_x().dtype(), first_x().shape());
    y_ = graph_.placeholder("y", first_y().dtype(), first_y().shape());
    train_ = adam().minimize(model.build(parameters_)(x_, y_), parameters_);
    session_.emplace(graph_, SessionOptions{.device = device});
    session_->restore(input.path());
    step_.emplace(session_->prepare(train_, {x_, y_}));
  }

  // Operators of a step, the updates of all parameters counted as one. Without capture each is
  // launched at least once.
  std::size_t operators() const {
    const memory::Plan plan =
        graph_.plan({train_}, {{x_, first_x().shape()}, {y_, first_y().shape()}}, device());
    return plan.nodes - parameters_.entries().size() + 1;
  }

 private:
  Tensor train(const Tensor& x, const Tensor& y) override { return (*step_)(x, y); }
  Graph graph_;
  const Parameters parameters_;
  Tensor x_, y_, train_;
  std::optional<Session> session_;
  std::optional<PreparedStep> step_;
};

}  // namespace ebb::benchmarks
