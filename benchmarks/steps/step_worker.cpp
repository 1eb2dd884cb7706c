// Whole training steps, on request: what benchmarks/run.py starts, beside PyTorch's
// torch_worker.py. Reads commands from the standard input, a line each, and answers with a line:
//   run N    makes N steps; the seconds they took
//   losses   of all steps so far
//   memory   makes one more step; {"peak_bytes": ..., "held_bytes": ..., "step_bytes": ...}
// Beside the two modes it offers the parts of what bounds a step, each with "run" alone:
//   products  the matrix products of a step, on operands that are there already
//   fastest   one large product instead, for the rate that the machine is capable of
//   stream    memory read and written as Adam has to: of four arrays, three back
// Of products and fastest, "operations" gives the floating-point operations of a step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/shape.h"
#include "ebb/eager/no_grad.h"
#include "ebb/graph/session.h"
#include "ebb/models/forecaster.h"
#include "ebb/models/mlp.h"
#include "ebb/optim/adam.h"

namespace {

using namespace ebb;

// Weights under the names of the models; "x" and "y" are several batches, one after the other along
// the leading axis.
class Input {
 public:
  explicit Input(const std::string& file) : file_(file) {}

  Tensor read(const std::string& name) const {
    const safetensors::File::Entry* entry = file_.find(name);
    if (entry == nullptr) throw FileError("the weights and data lack '" + name + "'");
    switch (entry->spec.dtype) {
      case DType::f32:
        return read_as<float>(*entry);
      case DType::i64:
        return read_as<std::int64_t>(*entry);
      default:
        throw FileError("'" + name + "' is neither float32 nor int64");
    }
  }

 private:
  template <class T>
  Tensor read_as(const safetensors::File::Entry& entry) const {
    std::vector<T> values(entry.spec.bytes() / sizeof(T));
    file_.read(entry.name, values.data());
    return Tensor::from(values, entry.spec.shape);
  }

  safetensors::File file_;
};

std::vector<Tensor> cut(const Tensor& samples, std::int64_t batch) {
  std::vector<Tensor> batches;
  for (std::int64_t begin = 0; begin < samples.shape()[0]; begin += batch)
    batches.push_back(slice(samples, begin, begin + batch));
  return batches;
}

// A matrix product of a step, of two of the model's operands, which products share as in a step.
struct Product {
  std::size_t a, b;
  MatmulOptions options = {};
  std::int64_t times = 1;
};

constexpr MatmulOptions kPlain{}, kWeightGradient{.transpose_a = true},
    kDataGradient{.transpose_b = true};

// One of the two models that are measured.
struct Model {
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& y)>;
  std::int64_t batch;
  std::function<Loss(const Parameters&)> build;
  std::vector<Shape> operands = {};
  std::vector<Product> products = {};

  std::size_t operand(std::int64_t rows, std::int64_t columns) {
    operands.push_back({rows, columns});
    return operands.size() - 1;
  }
  // The products of a layer that takes x, and gives its gradient where that is wanted.
  void add_layer(std::size_t x, std::int64_t out, bool gradient_of_x) {
    const std::size_t w = operand(operands[x][1], out), dy = operand(operands[x][0], out);
    products.push_back({x, w, kPlain});
    products.push_back({x, dy, kWeightGradient});
    if (gradient_of_x) products.push_back({dy, w, kDataGradient});
  }
};

Model mlp() {
  const std::vector<std::int64_t> sizes = {784, 512, 512, 10};
  Model model{.batch = 128, .build = [sizes](const Parameters& parameters) {
                return [mlp = models::Mlp(parameters, sizes)](const Tensor& x, const Tensor& y) {
                  return softmax_cross_entropy(mlp(x), y);
                };
              }};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    model.add_layer(model.operand(model.batch, sizes[i]), sizes[i + 1], i > 0);
  return model;
}

Model lstm() {
  constexpr std::int64_t batch = 32, time = 64, in = 64, hidden = 256, gates = 4 * hidden;
  Model model{.batch = batch, .build = [](const Parameters& parameters) {
                return [forecaster = models::Forecaster(parameters, in, {.hidden = hidden})](
                           const Tensor& x, const Tensor& y) {
                  return mse(forecaster(x, Phase::training), y);
                };
              }};
  model.add_layer(model.operand(batch * time, in), gates, false);
  const std::size_t h = model.operand(batch, hidden), r = model.operand(hidden, gates),
                    dg = model.operand(batch, gates), all_h = model.operand(batch * time, hidden),
                    all_dg = model.operand(batch * time, gates);
  model.products.push_back({h, r, kPlain, time - 1});
  model.products.push_back({dg, r, kDataGradient, time - 1});
  model.products.push_back({all_h, all_dg, kWeightGradient});
  model.add_layer(h, 1, true);
  return model;
}

// A product as fast as any: what the machine can do.
Model fastest() {
  Model model{.batch = 0, .build = {}};
  model.products.push_back({model.operand(1024, 1024), model.operand(1024, 1024)});
  return model;
}

class Worker {
 public:
  virtual ~Worker() = default;
  virtual void step() = 0;
};

// Training, in either mode.
class Training : public Worker {
 public:
  Training(const Model& model, const Input& input)
      : xs_(cut(input.read("x"), model.batch)), ys_(cut(input.read("y"), model.batch)) {
    for (std::size_t i = 0; i < xs_.size(); ++i) data_bytes_ += xs_[i].bytes() + ys_[i].bytes();
  }

  void step() override {
    const std::size_t i = losses_.size() % xs_.size();
    losses_.push_back(train(xs_[i], ys_[i]).item<float>());
  }
  const std::vector<float>& losses() const noexcept { return losses_; }

  // The batches, which are the caller's in both frameworks, are left out.
  nlohmann::ordered_json memory() {
    const Device device = Device::cpu();
    memory::reset_peaks(device);
    step();
    const memory::Stats stats = memory::stats(device);
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
            {"at_peak", at_peak}};
  }

 protected:
  virtual Tensor train(const Tensor& x, const Tensor& y) = 0;
  static optim::Adam adam() { return optim::Adam({.learning_rate = 1e-4}); }
  const std::vector<Tensor>& xs() const noexcept { return xs_; }
  const std::vector<Tensor>& ys() const noexcept { return ys_; }

 private:
  const std::vector<Tensor> xs_, ys_;
  std::size_t data_bytes_ = 0;
  std::vector<float> losses_;
};

class EagerTraining final : public Training {
 public:
  EagerTraining(const Model& model, const std::string& file)
      : Training(model, Input(file)), parameters_(Device::cpu()), loss_(model.build(parameters_)) {
    parameters_.load(file);
  }

 private:
  Tensor train(const Tensor& x, const Tensor& y) override {
    return adam_.minimize(loss_(x, y), parameters_);
  }
  const Parameters parameters_;
  const std::function<Tensor(const Tensor&, const Tensor&)> loss_;
  const optim::Adam adam_ = adam();
};

class GraphTraining final : public Training {
 public:
  GraphTraining(const Model& model, const std::string& file)
      : Training(model, Input(file)), parameters_(graph_) {
    const Tensor x = graph_.placeholder("x", xs()[0].dtype(), xs()[0].shape());
    const Tensor y = graph_.placeholder("y", ys()[0].dtype(), ys()[0].shape());
    const Tensor train = adam().minimize(model.build(parameters_)(x, y), parameters_);
    session_.emplace(graph_);
    session_->restore(file);
    step_.emplace(session_->prepare(train, {x, y}));
  }

 private:
  Tensor train(const Tensor& x, const Tensor& y) override { return (*step_)(x, y); }
  Graph graph_;
  const Parameters parameters_;
  std::optional<Session> session_;
  std::optional<PreparedStep> step_;
};

class Products final : public Worker {
 public:
  explicit Products(const Model& model) : products_(model.products) {
    for (const Shape& shape : model.operands) operands_.push_back(Tensor::full(shape, 0.01));
  }
  // Each result's memory comes from the cache, warm after the first step, for a few dozen ns.
  void step() override {
    const NoGrad no_grad;
    for (const Product& product : products_)
      for (std::int64_t i = 0; i < product.times; ++i)
        matmul(operands_[product.a], operands_[product.b], product.options);
  }
  double operations() const {
    double sum = 0;
    for (const auto& [a, b, options, times] : products_) {
      const Tensor &first = operands_[a], &second = operands_[b];
      const std::int64_t columns = second.shape()[options.transpose_b ? 0 : 1];
      sum += 2.0 * static_cast<double>(first.elements() * columns * times);
    }
    return sum;
  }

 private:
  const std::vector<Product> products_;
  std::vector<Tensor> operands_;
};

class Bandwidth final : public Worker {
 public:
  explicit Bandwidth(const Model& model) {
    const Parameters parameters(Device::cpu());
    model.build(parameters);
    for (auto& array : arrays_) array.resize(static_cast<std::size_t>(parameters.count()));
  }
  void step() override {
    const auto all = static_cast<std::int64_t>(arrays_[0].size());
    Workers::instance().run((all + kPiece - 1) / kPiece, [&](std::int64_t piece) {
      const std::int64_t begin = piece * kPiece, end = std::min(all, begin + kPiece);
      float* const p = arrays_[0].data();
      float* const m = arrays_[1].data();
      float* const v = arrays_[2].data();
      const float* const g = arrays_[3].data();
      for (std::int64_t i = begin; i < end; ++i) {
        p[i] += g[i];
        m[i] += g[i];
        v[i] += g[i];
      }
    });
  }

 private:
  static constexpr std::int64_t kPiece = 16'384;
  std::array<std::vector<float>, 4> arrays_;
};

std::string answer(Worker& worker, const std::string& line) {
  using Clock = std::chrono::steady_clock;
  std::istringstream words(line);
  std::string command;
  std::int64_t steps = 0;
  words >> command;
  if (command == "run" && words >> steps) {
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < steps; ++i) worker.step();
    return nlohmann::json(std::chrono::duration<double>(Clock::now() - start).count()).dump();
  }
  if (auto* training = dynamic_cast<Training*>(&worker)) {
    if (command == "losses") return nlohmann::json(training->losses()).dump();
    if (command == "memory") return training->memory().dump();
  }
  if (const auto* products = dynamic_cast<Products*>(&worker); products && command == "operations")
    return nlohmann::json(products->operations()).dump();
  throw Error("unknown command '" + line + "'");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes training steps for benchmarks/run.py.");
  std::string model_name, mode, file;
  int threads = 1;
  app.add_option("--model", model_name)->required()->check(CLI::IsMember({"mlp", "lstm"}));
  app.add_option("--mode", mode)
      ->required()
      ->check(CLI::IsMember({"graph", "eager", "products", "fastest", "stream"}));
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--weights", file, "safetensors file of weights and batches")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    Workers::instance().set_threads(threads);
    flush_denormals_on_this_thread();
    const Model model = model_name == "mlp" ? mlp() : lstm();
    std::unique_ptr<Worker> worker;
    if (mode == "graph") worker = std::make_unique<GraphTraining>(model, file);
    if (mode == "eager") worker = std::make_unique<EagerTraining>(model, file);
    if (mode == "products") worker = std::make_unique<Products>(model);
    if (mode == "fastest") worker = std::make_unique<Products>(fastest());
    if (mode == "stream") worker = std::make_unique<Bandwidth>(model);
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);)
      std::cout << answer(*worker, line) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "step_worker: " << error.what() << '\n';
    return 1;
  }
}
