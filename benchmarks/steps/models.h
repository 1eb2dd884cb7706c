// The models that are measured, built from a file of weights and batches, with the matrix products
// of their training steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/tensor_files.h"
#include "ebb/core/device/world.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/models/attention.h"
#include "ebb/models/conv.h"
#include "ebb/models/embedding.h"
#include "ebb/models/forecaster.h"
#include "ebb/models/mlp.h"
#include "ebb/models/norm.h"

namespace ebb::benchmarks {

// A file with weights under the names of the models. "x" and "y" hold several batches, stacked
// along a new first axis. With a world each rank has its part of the rows of a batch.
class InputFile {
 public:
  explicit InputFile(const std::string& path, const std::optional<distributed::World>& world = {})
      : path_(path), world_(world), file_(path) {}

  const std::string& path() const noexcept { return path_; }
  const std::optional<distributed::World>& world() const noexcept { return world_; }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const Shape& shape(const std::string& name) const { return find(name).spec.shape; }
  // Dtype of the weights, and of the batches except indices.
  DType dtype() const {
    for (const auto& entry : file_.entries())
      if (entry.name.ends_with(".weight")) return entry.spec.dtype;
    throw FileError("there are no weights");
  }
  std::vector<Tensor> batches(const std::string& name, const Device& device) const {
    const std::int64_t count = shape(name)[0], rows = shape(name)[1];
    const std::int64_t rank = world_ ? world_->rank() : 0, ranks = world_ ? world_->size() : 1;
    const Tensor all = load_safetensors(path_).at(name);
    std::vector<Tensor> batches;
    for (std::int64_t i = 0; i < count; ++i)
      batches.push_back(slice(all[i], rows * rank / ranks, rows * (rank + 1) / ranks).to(device));
    return batches;
  }

 private:
  const safetensors::File::Entry& find(const std::string& name) const {
    const safetensors::File::Entry* entry = file_.find(name);
    if (entry == nullptr) throw FileError("the weights and data lack '" + name + "'");
    return *entry;
  }

  const std::string path_;
  const std::optional<distributed::World> world_;
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

struct GptBlock {
  models::LayerNorm norm_1, norm_2;
  models::MultiHeadAttention attention;
  models::Dense fc, proj;

  GptBlock(const Parameters& p, std::int64_t features, std::int64_t heads)
      : norm_1(p.scope("norm_1"), features),
        norm_2(p.scope("norm_2"), features),
        attention(p.scope("attention"), features, {.heads = heads, .fused_qkv = true}),
        fc(p.scope("fc"), features, 4 * features, Activation::gelu_tanh),
        proj(p.scope("proj"), 4 * features, features) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor attended = x + attention(norm_1(x), {.causal = true});
    return attended + proj(fc(norm_2(attended)));
  }
};

struct Gpt {
  models::Embedding token, position;
  std::vector<GptBlock> blocks;
  models::LayerNorm norm;

  Gpt(const Parameters& p, std::int64_t vocabulary, std::int64_t length, std::int64_t features,
      std::int64_t heads, std::int64_t layers)
      : token(p.scope("token"), vocabulary, features),
        position(p.scope("position"), length, features),
        norm(p.scope("norm"), features) {
    for (std::int64_t i = 0; i < layers; ++i)
      blocks.emplace_back(p.scope("block." + std::to_string(i)), features, heads);
  }
  Tensor operator()(const Tensor& tokens) const {
    Tensor x = token(tokens) + position.weight();
    for (const GptBlock& block : blocks) x = block(x);
    return matmul(norm(x), token.weight(), {.transpose_b = true});
  }
};

// Softmax cross-entropy of each next token, for x [batch, length].
inline Model make_gpt(const InputFile& input) {
  const Shape &x = input.shape("x"), &table = input.shape("token.weight");
  const std::int64_t heads = input.shape("heads")[0], features = table[1], length = x[2];
  std::int64_t layers = 0;
  while (input.has("block." + std::to_string(layers) + ".fc.weight")) ++layers;
  Model model{.build = [=, vocabulary = table[0]](const Parameters& parameters) {
    return [gpt = Gpt(parameters, vocabulary, length, features, heads, layers)](const Tensor& x,
                                                                                const Tensor& y) {
      const Tensor scores = gpt(x);
      return softmax_cross_entropy(reshape(scores, {-1, scores.shape().dim(2)}), reshape(y, {-1}));
    };
  }};
  const std::int64_t rows = x[1] * length;
  const std::size_t h = model.operand(rows, features), wide = model.operand(rows, 4 * features),
                    q = model.operand(length, features / heads), p = model.operand(length, length);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    model.add_layer(h, 3 * features, true);
    model.add_layer(h, features, true);
    model.add_layer(h, 4 * features, true);
    model.add_layer(wide, features, true);
    // Scores and values forward, and the four gradients.
    model.products.push_back({q, q, kDataGradient, 2 * heads * x[1]});
    model.products.push_back({p, q, kPlain, 4 * heads * x[1]});
  }
  model.add_layer(h, table[0], true);
  return model;
}

// A convolution that keeps the size but for its stride, and its norm.
struct NormedConv {
  models::Conv2d conv;
  models::BatchNorm norm;

  NormedConv(const Parameters& p, std::int64_t in, std::int64_t out, std::int64_t kernel,
             std::int64_t stride)
      : conv(p.scope("conv"), in, out,
             {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false}),
        norm(p.scope("norm"), out) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x), Phase::training); }
};

struct Residual {
  NormedConv first, second;
  std::optional<NormedConv> shortcut;

  Residual(const Parameters& p, std::int64_t in, std::int64_t out)
      : first(p.scope("first"), in, out, 3, in == out ? 1 : 2),
        second(p.scope("second"), out, out, 3, 1) {
    if (in != out) shortcut.emplace(p.scope("shortcut"), in, out, 1, 2);
  }
  Tensor operator()(const Tensor& x) const {
    return relu(second(relu(first(x))) + (shortcut ? (*shortcut)(x) : x));
  }
};

// Softmax cross-entropy of ten classes, for images x [batch, 3, side, side].
inline Model make_resnet(const InputFile& input) {
  struct ResNet {
    NormedConv stem;
    std::vector<Residual> blocks;
    models::Dense head;
  };
  std::vector<std::int64_t> widths = {input.shape("stem.conv.weight")[0]};
  const auto name = [](std::size_t i) { return "block." + std::to_string(i); };
  while (input.has(name(widths.size() - 1) + ".first.conv.weight"))
    widths.push_back(input.shape(name(widths.size() - 1) + ".first.conv.weight")[0]);
  Model model{.build = [=](const Parameters& parameters) {
    ResNet net{{parameters.scope("stem"), 3, widths[0], 3, 1},
               {},
               {parameters.scope("head"), widths.back(), 10}};
    for (std::size_t i = 0; i + 1 < widths.size(); ++i)
      net.blocks.emplace_back(parameters.scope(name(i)), widths[i], widths[i + 1]);
    return [net = std::move(net)](const Tensor& x, const Tensor& y) {
      Tensor at = relu(net.stem(x));
      for (const Residual& block : net.blocks) at = block(at);
      return softmax_cross_entropy(net.head(mean(at, {.axes = {2, 3}})), y);
    };
  }};
  // A convolution as a product: a row for each output pixel.
  const auto add = [&](std::int64_t pixels, std::int64_t in, std::int64_t out,
                       std::int64_t kernel) {
    model.add_layer(model.operand(pixels, in * kernel * kernel), out, in != 3);
  };
  std::int64_t pixels = input.shape("x")[1] * input.shape("x")[3] * input.shape("x")[4];
  add(pixels, 3, widths[0], 3);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const bool halves = widths[i] != widths[i + 1];
    if (halves) pixels /= 4;
    add(pixels, widths[i], widths[i + 1], 3);
    add(pixels, widths[i + 1], widths[i + 1], 3);
    if (halves) add(pixels, widths[i], widths[i + 1], 1);
  }
  return model;
}

// A product of square matrices, as fast as any: the machine's rate.
inline Model make_square(std::int64_t side) {
  Model model;
  model.products.push_back({model.operand(side, side), model.operand(side, side)});
  return model;
}

}  // namespace ebb::benchmarks
