// Training steps of the four usual models, as graphs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ebb/ebb.h"

namespace ebb {

using Layers = std::vector<std::function<Tensor(Tensor)>>;

// A training step. With segments, the layers are cut into as many equal parts, each of which is
// computed again in the backward pass.
struct Step {
  Graph graph;
  Tensor x, y, train;
  Shape x_shape, y_shape;
  Parameters params{graph, Seed{1}};

  memory::Plan plan(const memory::PlanOptions& options = {}) const {
    return graph.plan({train}, {{x, x_shape}, {y, y_shape}}, Device::cpu(), options);
  }
  std::size_t least() const {
    return graph.least_budget({train}, {{x, x_shape}, {y, y_shape}}, Device::cpu());
  }
};

inline Tensor run_layers(const Layers& layers, Tensor x, int segments) {
  if (segments == 0) {
    for (const auto& layer : layers) x = layer(x);
    return x;
  }
  const std::size_t count = layers.size(), parts = static_cast<std::size_t>(segments);
  for (std::size_t s = 0; s < parts; ++s)
    x = recompute(
        [&, s](const Tensor& of) {
          Tensor value = of;
          for (std::size_t i = s * count / parts; i < (s + 1) * count / parts; ++i)
            value = layers[i](value);
          return value;
        },
        x);
  return x;
}

inline void make_mlp(Step& step, int count, int segments) {
  constexpr std::int64_t kWidth = 256;
  step.x_shape = {512, kWidth};
  step.y_shape = {512};
  step.x = step.graph.placeholder("x", DType::f32, {-1, kWidth});
  step.y = step.graph.placeholder("y", DType::i32, {-1});
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const models::Dense dense(step.params.scope("layer" + std::to_string(i)), kWidth, kWidth,
                              Activation::tanh);
    layers.push_back([dense](const Tensor& x) { return dense(x); });
  }
  const models::Dense out(step.params.scope("out"), kWidth, 10);
  const Tensor loss = softmax_cross_entropy(out(run_layers(layers, step.x, segments)), step.y);
  step.train = optim::Adam().minimize(loss, step.params);
}

// One layer over segments of time; the layers are the segments.
inline void make_lstm(Step& step, int count, int segments) {
  constexpr std::int64_t kIn = 32, kHidden = 128, kTime = 16, kBatch = 32;
  step.x_shape = {kBatch, kTime * count, kIn};
  step.y_shape = {kBatch, kHidden};
  step.x = step.graph.placeholder("x", DType::f32, step.x_shape);
  step.y = step.graph.placeholder("y", DType::f32, step.y_shape);
  const LstmWeights weights{
      step.params.declare("w", {kIn, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      step.params.declare("r", {kHidden, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      step.params.declare("b", {4 * kHidden}, initializers::zeros())};
  Layers layers;  // of hidden and cell state, stacked
  for (int i = 0; i < count; ++i)
    layers.push_back([&step, weights, i](const Tensor& states) {
      const Tensor part = slice(step.x, i * kTime, (i + 1) * kTime, {.axis = 1});
      const LstmResult result = lstm(part, {weights}, {.hidden = states[0], .cell = states[1]});
      return stack({result.hidden, result.cell});
    });
  const Tensor states = run_layers(layers, zeros(step.graph, {2, 1, kBatch, kHidden}), segments);
  step.train = optim::Adam().minimize(mean(square(reshape(states[0], {kBatch, kHidden}) - step.y)),
                                      step.params);
}

inline void make_gpt(Step& step, int count, int segments) {
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
  step.x_shape = step.y_shape = {kBatch, kLength};
  step.x = step.graph.placeholder("codes", DType::i32, {-1, kLength});
  step.y = step.graph.placeholder("next", DType::i32, {-1, kLength});
  const models::Embedding embedding(step.params.scope("embedding"), kClasses, kWidth);
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const Block block(step.params.scope("block" + std::to_string(i)));
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const models::LayerNorm norm(step.params.scope("norm"), kWidth);
  const models::Dense out(step.params.scope("out"), kWidth, kClasses);
  const Tensor scores = out(norm(run_layers(layers, embedding(step.x), segments)));
  step.train = optim::Adam().minimize(softmax_cross_entropy(scores, step.y), step.params);
}

inline void make_resnet(Step& step, int count, int segments) {
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
  step.x_shape = {kBatch, 3, kSide, kSide};
  step.y_shape = {kBatch};
  step.x = step.graph.placeholder("x", DType::f32, step.x_shape);
  step.y = step.graph.placeholder("y", DType::i32, step.y_shape);
  const models::Conv2d stem(step.params.scope("stem"), 3, 16, {.kernel = 3, .padding = 1});
  Layers layers;
  std::int64_t channels = 16;
  for (int i = 0; i < count; ++i) {
    const std::string name = "block" + std::to_string(i);
    if (i > 0 && i % std::max(count / 3, 1) == 0 && channels < 64) {
      const models::Conv2d down(step.params.scope(name + "down"), channels, 2 * channels,
                                {.kernel = 3, .stride = 2, .padding = 1});
      channels *= 2;
      layers.push_back([down](const Tensor& x) { return relu(down(x)); });
    }
    const Block block(step.params.scope(name), channels);
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const Tensor features = mean(run_layers(layers, stem(step.x), segments), {.axes = {2, 3}});
  const models::Dense out(step.params.scope("out"), channels, 10);
  step.train = optim::Adam().minimize(softmax_cross_entropy(out(features), step.y), step.params);
}

}  // namespace ebb
