// TensorFlow and Keras: functions of networks, losses, layers.

#include "ebb/tests/infinity.h"
#include "ebb/tests/parity/set.h"

namespace ebb::tests::parity {
namespace {

// Convert TensorFlow's images [n, h, w, channels] and filters [h, w, in, out] to ebb's layout, and
// results back.
Tensor image(const Tensor& x) { return permute(x, {0, 3, 1, 2}); }
Tensor filter(const Tensor& w) { return permute(w, {3, 2, 0, 1}); }
Tensor back(const Tensor& y) { return permute(y, {0, 2, 3, 1}); }

}  // namespace

EBB_SAME("tf.nn.relu(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.silu(x)", relu(x[0]), elu(x[0]),
         1.0507009873554805 * elu(x[0], 1.6732632423543772), silu(x[0]));
EBB_SAME("tf.nn.relu6(x)", clamp(x[0], 0, 6));
EBB_GIVES("tf.nn.leaky_relu(x)", 1e-7) {  // TensorFlow rounds the slope to f32
  return Tensors{leaky_relu(x[0], 0.2)};
}
EBB_GIVES("tf.nn.gelu(x), tf.nn.gelu(x, approximate=True)", 1e-7) {  // its constants are f32
  return Tensors{gelu(x[0]), gelu(x[0], {.approximate = true})};
}
EBB_SAME("tf.nn.softplus(x), tf.nn.softsign(x)", softplus(x[0]), x[0] / (1 + abs(x[0])));
EBB_SAME("tf.nn.softmax(x), tf.nn.log_softmax(x, axis=0)", softmax(x[0]), log_softmax(x[0], 0));
EBB_SAME("tf.nn.bias_add(x, b), tf.nn.xw_plus_b(x, w, b)", matmul(x[0], x[1]) + x[2],
         dense(x[0], x[1], x[2]));
EBB_SAME("tf.nn.conv2d(x, w, 1, 'VALID')", back(conv2d(image(x[0]), filter(x[1]))));
EBB_SAME("tf.nn.conv2d(x, w, 2, 'SAME')",
         back(conv2d(pad(image(x[0]), {{0, 0}, {0, 0}, {1, 1}, {0, 1}}), filter(x[1]),
                     {.stride = 2})));
EBB_SAME("tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], 'VALID')",
         back(conv2d(image(x[0]), reshape(permute(x[1], {2, 3, 0, 1}), {8, 1, 3, 2}),
                     {.groups = 4})));
EBB_SAME("tf.nn.max_pool2d(x, 2, 2, 'VALID')", back(max_pool2d(image(x[0]))));
EBB_SAME("tf.nn.max_pool2d(x, 3, 2, 'SAME')",
         back(max_pool2d(pad(image(x[0]), {{0, 0}, {0, 0}, {1, 1}, {0, 1}}, -kInfinity64),
                         {.kernel = 3, .stride = 2})));
EBB_SAME("tf.nn.avg_pool2d(x, 3, 2, 'SAME')",
         back(avg_pool2d(image(x[0]),
                         {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false})));
EBB_SAME("tf.nn.batch_normalization(x, m, v, b, w, 1e-3)",
         batch_norm(x[0], x[4], x[3], x[1], x[2], {.epsilon = 1e-3}));
EBB_GIVES("tf1.nn.fused_batch_norm(x, w, b)") {
  const Tensor mean = Tensor::zeros({4}), variance = Tensor::zeros({4});
  const Tensor y =
      batch_norm(x[0], ones({4}), ones({4}), mean, variance,
                 {.phase = Phase::training, .axis = -1, .momentum = 1, .epsilon = 1e-3});
  return Tensors{y, mean, variance};
}

EBB_SAME("tf.nn.sparse_softmax_cross_entropy_with_logits(i, x)",
         softmax_cross_entropy(x[1], x[0], {.reduction = LossReduction::none}));
EBB_SAME("tf.nn.softmax_cross_entropy_with_logits(p, x)",
         softmax_cross_entropy(x[1], x[0], {.reduction = LossReduction::none}));
EBB_SAME("tf.nn.sigmoid_cross_entropy_with_logits(z, x)",
         binary_cross_entropy_with_logits(x[1], x[0], {.reduction = LossReduction::none}));
EBB_SAME("tf.nn.weighted_cross_entropy_with_logits(z, x, 3.)",
         binary_cross_entropy_with_logits(x[1], x[0],
                                          {.positive_weight = Tensor::full({}, 3, DType::f64),
                                           .reduction = LossReduction::none}));
EBB_SAME("tf1.losses.mean_squared_error(y, x)", mse(x[1], x[0]));
EBB_SAME("tf1.losses.absolute_difference(y, x)", mae(x[1], x[0]));
EBB_SAME("tf1.losses.huber_loss(y, x, delta=0.5)", huber(x[1], x[0], {.delta = 0.5}));
EBB_SAME("tf1.losses.sparse_softmax_cross_entropy(i, x)", softmax_cross_entropy(x[1], x[0]));
EBB_SAME("tf1.losses.softmax_cross_entropy(p, x, label_smoothing=0.1)",
         softmax_cross_entropy(x[0], x[1], {.label_smoothing = 0.1}));
EBB_SAME("tf1.losses.sigmoid_cross_entropy(z, x)", binary_cross_entropy_with_logits(x[0], x[1]));
EBB_GIVES("tf1.losses.mean_squared_error(y, x, weights=[[1.], [0.]])") {
  const Tensor w = broadcast_to(Tensor::from({{1.f}, {0.f}}), {2, 4});
  return Tensors{sum(w * square(x[1] - x[0])) / cast(sum(w != 0), DType::f32)};
}
EBB_SAME("keras.losses.MeanSquaredError(), keras.losses.Huber(0.5)", mse(x[1], x[0]),
         huber(x[1], x[0], {.delta = 0.5}));
EBB_SAME("keras.losses.BinaryCrossentropy(from_logits=True)",
         binary_cross_entropy_with_logits(x[1], x[0]));
EBB_SAME("keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
         softmax_cross_entropy(x[1], x[0]));
EBB_SAME("keras.losses.KLDivergence()", kl_divergence(log(x[0]), log_softmax(x[1])));

EBB_SAME("keras.layers.Dense(3)",
         layer_of<models::Dense>(x[0], {{"weight", x[1]}, {"bias", x[2]}}, 4, 3));
EBB_SAME("keras.layers.Conv2D(3, 2)",
         back(layer_of<models::Conv2d>(image(x[0]), {{"weight", filter(x[1])}, {"bias", x[2]}}, 2,
                                       3, models::Conv2dOptions{.kernel = 2})));
EBB_SAME("keras.layers.Embedding(5, 3)",
         layer_of<models::Embedding>(x[0], {{"weight", x[1]}}, 5, 3));
EBB_SAME("keras.layers.LayerNormalization()",
         layer_of<models::LayerNorm>(x[0], {{"scale", x[1]}, {"shift", x[2]}}, 4, 1e-3));
EBB_GIVES("keras.layers.LSTM(2, return_sequences=True, return_state=True)") {
  const Parameters params = f64();
  const models::Lstm layer(params, 3, {.hidden = 2});
  set(params, {{"0.input", x[1]}, {"0.recurrent", x[2]}, {"0.bias", x[3]}});
  const models::LstmOutput out = layer(x[0]);
  return Tensors{out.sequence, squeeze(out.hidden, 0), squeeze(out.cell, 0)};
}
EBB_GIVES("keras.layers.Bidirectional(keras.layers.LSTM(2, return_sequences=True))") {
  const Parameters params = f64();
  const models::Lstm layer(params, 3, {.hidden = 2, .bidirectional = true});
  set(params, {{"0.input", x[1]},
               {"0.recurrent", x[2]},
               {"0.bias", x[3]},
               {"0.reverse.input", x[4]},
               {"0.reverse.recurrent", x[5]},
               {"0.reverse.bias", x[6]}});
  return Tensors{layer(x[0]).sequence};
}
EBB_GIVES("tf1.nn.dynamic_rnn(tf1.nn.rnn_cell.BasicLSTMCell(2), x)") {
  // TensorFlow has gates i, j, f, o in one kernel for input and state, and adds 1 to the forget
  // bias.
  const auto in_order = [](const Tensor& w) {
    const Tensors gates = chunk(w, 4, -1);
    return concat({gates[0], gates[2], gates[1], gates[3]}, -1);
  };
  const Tensors kernel = split(in_order(x[1]), {3, 2});
  const Tensor forget = pad(Tensor::full({2}, 1, DType::f64), {{2, 4}});
  const LstmWeights weights{kernel[0], kernel[1], in_order(x[2]) + forget};
  const LstmResult result = lstm(x[0], std::array{weights});
  return Tensors{result.sequence, squeeze(result.hidden, 0), squeeze(result.cell, 0)};
}
EBB_GIVES("keras.layers.GRU(2, return_sequences=True, return_state=True)") {
  const auto in_order = [](const Tensor& w) {  // from z, r, n to r, z, n
    const Tensors gates = chunk(w, 3, -1);
    return concat({gates[1], gates[0], gates[2]}, -1);
  };
  const Tensors of_x = split(in_order(x[3][0]), {4, 2}), of_h = split(in_order(x[3][1]), {4, 2});
  const Parameters params = f64();
  const models::Gru layer(params, 3, {.hidden = 2});
  set(params, {{"0.input", in_order(x[1])},
               {"0.recurrent", in_order(x[2])},
               {"0.bias", concat({of_x[0] + of_h[0], of_x[1], of_h[1]})}});
  const models::GruOutput out = layer(x[0]);
  return Tensors{out.sequence, squeeze(out.hidden, 0)};
}
EBB_GIVES("keras.layers.BatchNormalization(momentum=0.9)") {
  const Parameters params = f64();
  const models::BatchNorm layer(params, 3, {.axis = -1, .momentum = 0.1, .epsilon = 1e-3});
  const Tensor y = layer(x[0], Phase::training);
  // Keras divides the variance of the batch by n, here 8, and ebb by n - 1.
  const Tensor variance = 0.9 + (params["running_variance"] - 0.9) * 7 / 8;
  return Tensors{y.detach(), params["running_mean"], variance};
}

}  // namespace ebb::tests::parity
