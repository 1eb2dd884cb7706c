// The models that are measured, built from a file of weights and batches, with the matrix products
// of their training steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/tensor_files.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/models/forecaster.h"
#include "ebb/models/mlp.h"

namespace ebb::benchmarks {

// A file with weights under the names of the models. "x" and "y" hold several batches, stacked
// along a new first axis.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path), file_(path) {}

  const std::string& path() const noexcept { return path_; }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const Shape& shape(const std::string& name) const { return find(name).spec.shape; }
  // Dtype of the weights, and of the batches except class indices.
  DType dtype() const { return find("x").spec.dtype; }
  std::vector<Tensor> batches(const std::string& name, const Device& device) const {
    const std::int64_t count = shape(name)[0];
    const Tensor all = load_safetensors(path_).at(name);
    std::vector<Tensor> batches;
    for (std::int64_t i = 0; i < count; ++i) batches.push_back(all[i].to(device));
    return batches;
  }

 private:
  const safetensors::File::Entry& find(const std::string& name) const {
    const safetensors::File::Entry* entry = file_.find(name);
    if (entry == nullptr) throw FileError("the weights and data lack '" + name + "'");
    return *entry;
  }

  const std::string path_;
  safetensors::File file_;
};

// A matrix product of a step, by the indices of its operands. Products share operands as in a step.
struct Product {
  std::size_t a, b;
  MatmulOptions options = {};
  std::int64_t times = 1;
};

inline constexpr MatmulOptions kPlain{}, kWeightGradient{.transpose_a = true},
    kDataGradient{.transpose_b = true};

struct Model {
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& y)>;
  std::function<Loss(const Parameters&)> build = {};
  std::vector<Shape> operands = {};
  std::vector<Product> products = {};

  std::size_t operand(std::int64_t rows, std::int64_t columns) {
    operands.push_back({rows, columns});
    return operands.size() - 1;
  }
  // The products of a layer on x: forward, weight gradient and, if wanted, the gradient of x.
  void add_layer(std::size_t x, std::int64_t out, bool gradient_of_x) {
    const std::size_t w = operand(operands[x][1], out), dy = operand(operands[x][0], out);
    products.push_back({x, w, kPlain});
    products.push_back({x, dy, kWeightGradient});
    if (gradient_of_x) products.push_back({dy, w, kDataGradient});
  }
  // Floating-point operations of all products.
  double operations() const {
    double sum = 0;
    for (const auto& [a, b, options, times] : products) {
      const Shape &first = operands[a], &second = operands[b];
      const std::int64_t columns = second[options.transpose_b ? 0 : 1];
      sum += 2.0 * static_cast<double>(first.elements() * columns * times);
    }
    return sum;
  }
};

// Softmax cross-entropy of layers "0", "1", ... for x [batch, in].
inline Model make_mlp(const InputFile& input) {
  std::vector<std::int64_t> sizes = {input.shape("x")[2]};
  for (std::size_t i = 0; input.has(std::to_string(i) + ".weight"); ++i)
    sizes.push_back(input.shape(std::to_string(i) + ".weight")[1]);
  Model model{.build = [sizes](const Parameters& parameters) {
    return [mlp = models::Mlp(parameters, sizes)](const Tensor& x, const Tensor& y) {
      return softmax_cross_entropy(mlp(x), y);
    };
  }};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    model.add_layer(model.operand(input.shape("x")[1], sizes[i]), sizes[i + 1], i > 0);
  return model;
}

// The mean squared error of one number per sequence, made from its last step, for x [batch, time,
// in].
inline Model make_lstm(const InputFile& input) {
  const Shape& x = input.shape("x");
  const std::int64_t batch = x[1], time = x[2], in = x[3];
  const std::int64_t hidden = input.shape("lstm.0.recurrent")[0], gates = 4 * hidden;
  std::int64_t layers = 0;
  while (input.has("lstm." + std::to_string(layers) + ".input")) ++layers;
  const models::LstmOptions options{.hidden = hidden, .layers = layers};
  Model model{.build = [in, options](const Parameters& parameters) {
    return [forecaster = models::Forecaster(parameters, in, options)](
               const Tensor& x, const Tensor& y) { return mse(forecaster(x, Phase::training), y); };
  }};
  const std::size_t h = model.operand(batch, hidden), dg = model.operand(batch, gates),
                    all_h = model.operand(batch * time, hidden),
                    all_dg = model.operand(batch * time, gates);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::size_t r = model.operand(hidden, gates);
    model.add_layer(layer == 0 ? model.operand(batch * time, in) : all_h, gates, layer > 0);
    model.products.push_back({h, r, kPlain, time - 1});
    model.products.push_back({dg, r, kDataGradient, time - 1});
    model.products.push_back({all_h, all_dg, kWeightGradient});
  }
  model.add_layer(h, 1, true);
  return model;
}

// A product of square matrices, as fast as any: the machine's rate.
inline Model make_square(std::int64_t side) {
  Model model;
  model.products.push_back({model.operand(side, side), model.operand(side, side)});
  return model;
}

}  // namespace ebb::benchmarks
