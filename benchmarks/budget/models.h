// The four usual models, whose losses are written once for graphs, compiled steps and eager.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ebb/ebb.h"

namespace ebb {

using Layers = std::vector<std::function<Tensor(Tensor)>>;

// With segments, the layers are cut into as many equal parts, which are computed again in the
// backward pass.
struct Model {
  Spec x, y;
  std::function<Tensor(const Tensor& x, const Tensor& y, int segments)> loss;
};

// A training step as a graph, whose leading axes are open.
struct Step {
  Graph graph;
  Parameters params{graph, Seed{1}};
  Model model;
  Tensor x, y, train;

  explicit Step(const std::function<Model(const Parameters&)>& make, int segments = 0)
      : model(make(params)) {
    const auto placeholder = [&](const char* name, const Spec& of) {
      Shape open = of.shape;
      open.set(0, -1);
      return graph.placeholder(name, of.dtype, open);
    };
    x = placeholder("x", model.x);
    y = placeholder("y", model.y);
    train = optim::Adam().minimize(model.loss(x, y, segments), params);
  }
  memory::Plan plan(const Device& device, const memory::PlanOptions& options = {}) const {
    return graph.plan({train}, {{x, model.x.shape}, {y, model.y.shape}}, device, options);
  }
};

// The last segment takes what is left over and is not computed again, as in checkpoint_sequential.
inline Tensor run_layers(const Layers& layers, Tensor x, int segments) {
  const auto run = [](const Layers& part, Tensor value) {
    for (const auto& layer : part) value = layer(value);
    return value;
  };
  const std::ptrdiff_t size =
      segments == 0 ? 0 : static_cast<std::ptrdiff_t>(layers.size()) / segments;
  auto first = layers.begin();
  for (int s = 1; s < segments; ++s, first += size)
    x = recompute(
        [part = Layers(first, first + size), run](const Tensor& value) { return run(part, value); },
        x);
  return run(Layers(first, layers.end()), x);
}

inline Model make_mlp(const Parameters& params, int count) {
  constexpr std::int64_t kWidth = 256, kBatch = 512;
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const models::Dense dense(params.scope("layer" + std::to_string(i)), kWidth, kWidth,
                              Activation::tanh);
    layers.push_back([dense](const Tensor& x) { return dense(x); });
  }
  const models::Dense out(params.scope("out"), kWidth, 10);
  return {{DType::f32, {kBatch, kWidth}},
          {DType::i32, {kBatch}},
          [=](const Tensor& x, const Tensor& y, int segments) {
            return softmax_cross_entropy(out(run_layers(layers, x, segments)), y);
          }};
}

// One layer over segments of time; the layers are the segments.
inline Model make_lstm(const Parameters& params, int count) {
  constexpr std::int64_t kIn = 32, kHidden = 128, kTime = 16, kBatch = 32;
  const LstmWeights weights{
      params.declare("w", {kIn, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      params.declare("r", {kHidden, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      params.declare("b", {4 * kHidden}, initializers::zeros())};
  return {{DType::f32, {kBatch, kTime * count, kIn}},
          {DType::f32, {kBatch, kHidden}},
          [=](const Tensor& x, const Tensor& y, int segments) {
            Layers layers;  // of hidden and cell state, stacked
            for (int i = 0; i < count; ++i)
              layers.push_back([=](const Tensor& states) {
                const Tensor part = slice(x, i * kTime, (i + 1) * kTime, {.axis = 1});
                const LstmResult result =
                    lstm(part, {weights}, {.hidden = states[0], .cell = states[1]});
                return stack({result.hidden, result.cell});
              });
            const Tensor zero = reshape(y * 0, {1, -1, kHidden});
            return mean(square(run_layers(layers, stack({zero, zero}), segments)[0][0] - y));
          }};
}

inline Model make_gpt(const Parameters& params, int count) {
  constexpr std::int64_t kWidth = 128, kLength = 64, kBatch = 8, kClasses = 512;
  struct Block {
    models::LayerNorm before_attention, before_mlp;
    models::MultiHeadAttention attention;
    models::Dense up, down;
    explicit Block(const Parameters& p)
        : before_attention(p.scope("before_attention"), kWidth),
          before_mlp(p.scope("before_mlp"), kWidth),
          attention(p.scope("attention"), kWidth, {.heads = 4}),
          up(p.scope("up"), kWidth, 4 * kWidth),
          down(p.scope("down"), 4 * kWidth, kWidth) {}
    Tensor operator()(Tensor x) const {
      x = x + attention(before_attention(x), {.causal = true});
      return x + down(gelu(up(before_mlp(x))));
    }
  };
  const models::Embedding embedding(params.scope("embedding"), kClasses, kWidth);
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const Block block(params.scope("block" + std::to_string(i)));
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const models::LayerNorm norm(params.scope("norm"), kWidth);
  const models::Dense out(params.scope("out"), kWidth, kClasses);
  const Spec codes{DType::i32, {kBatch, kLength}};
  return {codes, codes, [=](const Tensor& x, const Tensor& y, int segments) {
            return softmax_cross_entropy(out(norm(run_layers(layers, embedding(x), segments))), y);
          }};
}

inline Model make_resnet(const Parameters& params, int count) {
  constexpr std::int64_t kBatch = 8, kSide = 32;
  struct Block {
    models::Conv2d near, far;
    models::BatchNorm near_norm, far_norm;
    Block(const Parameters& p, std::int64_t channels)
        : near(p.scope("near"), channels, channels, {.kernel = 3, .padding = 1}),
          far(p.scope("far"), channels, channels, {.kernel = 3, .padding = 1}),
          near_norm(p.scope("near_norm"), channels),
          far_norm(p.scope("far_norm"), channels) {}
    Tensor operator()(const Tensor& x) const {
      const Tensor y = relu(near_norm(near(x), Phase::training));
      return relu(x + far_norm(far(y), Phase::training));
    }
  };
  const models::Conv2d stem(params.scope("stem"), 3, 16, {.kernel = 3, .padding = 1});
  Layers layers;
  std::int64_t channels = 16;
  for (int i = 0; i < count; ++i) {
    const std::string name = "block" + std::to_string(i);
    if (i > 0 && i % std::max(count / 3, 1) == 0 && channels < 64) {
      const models::Conv2d down(params.scope(name + "down"), channels, 2 * channels,
                                {.kernel = 3, .stride = 2, .padding = 1});
      channels *= 2;
      layers.push_back([down](const Tensor& x) { return relu(down(x)); });
    }
    const Block block(params.scope(name), channels);
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const models::Dense out(params.scope("out"), channels, 10);
  return {{DType::f32, {kBatch, 3, kSide, kSide}},
          {DType::i32, {kBatch}},
          [=](const Tensor& x, const Tensor& y, int segments) {
            const Tensor features = mean(run_layers(layers, stem(x), segments), {.axes = {2, 3}});
            return softmax_cross_entropy(out(features), y);
          }};
}

}  // namespace ebb
