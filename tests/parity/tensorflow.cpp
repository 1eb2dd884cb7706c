// TensorFlow: tensors, shapes, arithmetic, reductions, order, products.
#include <cmath>

#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("tf.constant([[1., 2.]])", Tensor::from({{1.f, 2.f}}));
EBB_SAME("tf.zeros([2, 3]), tf.fill([2, 3], 0.1)", Tensor::zeros({2, 3}),
         Tensor::full({2, 3}, 0.1));
EBB_SAME("tf.zeros_like(x), tf.ones_like(x)", zeros_like(x[0]), ones_like(x[0]));
EBB_SAME("tf.range(2, 9, 3)", arange(2, 9, {.step = 3, .dtype = DType::i32}));
EBB_SAME("tf.linspace(1., 2., 5)", linspace(1, 2, 5));
EBB_SAME("tf.eye(2, 3)", eye(2, {.columns = 3}));
EBB_SAME("tf.one_hot(i, 4)", one_hot(x[0], 4));
EBB_SAME("tf.cast(x, tf.int32)", cast(x[0], DType::i32));
EBB_SAME("tf.linalg.band_part(x, -1, 0)", tril(x[0]));

EBB_SAME("tf.reshape(x, [3, -1])", reshape(x[0], {3, -1}));
EBB_SAME("tf.expand_dims(x, 1), tf.squeeze(x, [1])", unsqueeze(x[0], 1), squeeze(x[1], 1));
EBB_SAME("tf.transpose(x, [2, 0, 1])", permute(x[0], {2, 0, 1}));
EBB_SAME("tf.transpose(x)", permute(x[0], {2, 1, 0}));
EBB_SAME("tf.concat([x, y], 1), tf.stack([x, y], 1)", concat({x[0], x[1]}, 1),
         stack({x[0], x[1]}, 1));
EBB_SAME("tf.unstack(x, axis=1)", select(x[0], 1, 0), select(x[0], 1, 1), select(x[0], 1, 2));
EBB_SAME("tf.split(x, 2, 2)", chunk(x[0], 2, 2));
EBB_SAME("tf.split(x, [1, 3], 2)", split(x[0], {1, 3}, 2));
EBB_SAME("tf.slice(x, [0, 1, 1], [2, 1, 3])",
         slice(slice(x[0], 1, 2, {.axis = 1}), 1, 4, {.axis = 2}));
EBB_SAME("x[:, ::-1, 1::2]",
         slice(slice(x[0], -1, kEnd, {.axis = 1, .step = -1}), 1, kEnd, {.axis = 2, .step = 2}));
EBB_SAME("tf.tile(x, [2, 3])", tile(tile(x[0], 2, 0), 3, 1));
EBB_SAME("tf.repeat(x, 2, axis=0)", repeat(x[0], 2, 0));
EBB_SAME("tf.broadcast_to(x, [2, 3])", broadcast_to(x[0], {2, 3}));
EBB_SAME("tf.pad(x, [[0, 3], [1, 2]], constant_values=v)", pad(x[0], {{0, 3}, {1, 2}}, 0.5));
EBB_SAME("tf.reverse(x, [1])", flip(x[0], 1));
EBB_SAME("tf.shape(x)[0]", cast(size(x[0], 0), DType::i32));
EBB_SAME("tf.gather(x, i, axis=1)", index_select(x[0], x[1], 1));
EBB_SAME("tf.gather(x, i, axis=1, batch_dims=1)", gather(x[0], 1, x[1]));
EBB_SAME("tf.nn.embedding_lookup(w, i)", embedding(x[0], x[1]));
EBB_SAME("tf.math.unsorted_segment_sum(x, i, 3)",
         index_add(Tensor::zeros({3, 4}, DType::f64), x[1], x[0]));
EBB_SAME("tf.where(c, x, y)", where(x[0], x[1], x[2]));
EBB_SAME("tf.reverse_sequence(x, n, seq_axis=1)", reverse_sequence(x[0], x[1]));

EBB_SAME("tf.add(x, y), tf.subtract(x, y), tf.multiply(x, y), tf.divide(x, y)", x[0] + x[1],
         x[0] - x[1], x[0] * x[1], x[0] / x[1]);
EBB_SAME("tf.truediv(i, j) of int32", cast(x[0], DType::f64) / cast(x[1], DType::f64));
EBB_SAME("tf.math.floordiv(i, j), tf.math.floormod(i, j)", floor_divide(x[0], x[1]),
         remainder(x[0], x[1]));
EBB_GIVES("tf.truncatediv(i, j), tf.truncatemod(i, j)") {
  const Tensor quotient = cast(trunc(cast(x[0], DType::f64) / cast(x[1], DType::f64)), DType::i32);
  return Tensors{quotient, x[0] - x[1] * quotient};
}
EBB_SAME("tf.math.divide_no_nan(x, y)", where(x[1] == 0, 0, x[0] / where(x[1] == 0, 1, x[1])));
EBB_SAME("tf.exp(x), tf.sin(x), tf.cos(x), tf.tanh(x), tf.square(x)", exp(x[0]), sin(x[0]),
         cos(x[0]), tanh(x[0]), square(x[0]));
EBB_SAME("tf.math.log(x), tf.math.log1p(x), tf.sqrt(x), tf.math.rsqrt(x), tf.pow(x, y)", log(x[0]),
         log1p(x[0]), sqrt(x[0]), rsqrt(x[0]), pow(x[0], x[1]));
EBB_SAME("tf.math.erf(x), tf.math.expm1(x), tf.math.sigmoid(x)", erf(x[0]), expm1(x[0]),
         sigmoid(x[0]));
EBB_SAME("tf.round(x), tf.floor(x), tf.math.ceil(x)", round(x[0]), floor(x[0]), ceil(x[0]));
EBB_SAME("tf.abs(x), tf.sign(x)", abs(x[0]), sign(x[0]));
EBB_SAME("tf.maximum(x, y), tf.minimum(x, y)", maximum(x[0], x[1]), minimum(x[0], x[1]));
EBB_SAME("tf.maximum(nan, y)", maximum(x[0], x[1]), minimum(x[0], x[1]));
EBB_ROW("the gradient of tf.maximum at ties") {
  const Tensor x = Tensor::from({1.0, 2.0}).with_grad(), y = Tensor::from({1.0, 2.0}).with_grad();
  CHECK(numbers(gradients(sum(maximum(x, y)), {x, y})[1]) == std::vector<double>{0.5, 0.5});
  CHECK(numbers(row["y0"]) == std::vector<double>{0, 0});
}
EBB_SAME("tf.clip_by_value(x, -1., 1.)", clamp(x[0], -1, 1));
EBB_SAME("tf.math.squared_difference(x, y)", square(x[0] - x[1]));
EBB_SAME("tf.equal(x, y), tf.less(x, y), tf.logical_not(c), tf.math.is_nan(x)", x[0] == x[1],
         x[0] < x[1], !x[2], isnan(x[0]));

EBB_SAME("tf.reduce_sum(x), tf.reduce_sum(x, 1, keepdims=True), tf.reduce_mean(x, [0, 2])",
         sum(x[0]), sum(x[0], {.axis = 1, .keep = true}), mean(x[0], {.axes = {0, 2}}));
EBB_SAME("tf.reduce_sum(x) of int32", cast(sum(x[0]), DType::i32));
EBB_SAME("tf.reduce_mean(x) of int32", cast(mean(cast(x[0], DType::f64)), DType::i32));
EBB_SAME("tf.reduce_max(x, 1), tf.reduce_min(x, 1)", max(x[0], 1), min(x[0], 1));
EBB_SAME("tf.reduce_max(nan)", max(x[0]), min(x[0]));
EBB_ROW("tf.reduce_max of nothing") {
  CHECK(numbers(row["y0"]) == std::vector<double>(2, -INFINITY));
  CHECK_ERROR(max(row["x0"], 1), ShapeError, "[max]");
}
EBB_SAME("tf.argmax(x), tf.argmin(x, 1)", argmax(x[0], 0), argmin(x[0], 1));
EBB_ROW("tf.argmax(nan)") {
  CHECK(numbers(row["y0"]) == std::vector<double>{2});
  CHECK(numbers(argmax(row["x0"])) == std::vector<double>{1});
}
EBB_SAME("tf.reduce_any(c, 1), tf.reduce_all(c, 1)", any(x[0], 1), all(x[0], 1));
EBB_SAME("tf.math.reduce_variance(x, 1), tf.math.reduce_std(x, 1)", variance(x[0], 1),
         standard_deviation(x[0], 1));
EBB_SAME("tf.nn.moments(x, [0])", mean(x[0], 0), variance(x[0], 0));
EBB_SAME("tf.reduce_logsumexp(x, 1)", logsumexp(x[0], 1));
EBB_SAME("tf.norm(x, axis=1)", norm(x[0], {.axis = 1}));
EBB_ROW("the gradient of tf.norm at 0") {
  const Tensor x = Tensor::zeros({3}, DType::f64).with_grad();
  CHECK(numbers(gradients(norm(x), {x})[0]) == std::vector<double>(3, 0));
  CHECK(numbers(isnan(row["y0"])) == std::vector<double>(3, 1));
}
EBB_SAME("tf.cumsum(x, 1, exclusive=True, reverse=True)",
         cumsum(x[0], 1, {.exclusive = true, .reverse = true}));
EBB_SAME("tf.math.count_nonzero(x)", sum(x[0] != 0));
EBB_SAME("tf.nn.l2_loss(x)", sum(square(x[0])) / 2);
EBB_SAME("tf.math.l2_normalize(x, 1)",
         x[0] * rsqrt(maximum(sum(square(x[0]), {.axis = 1, .keep = true}), 1e-12)));
EBB_SAME("tf.sort(x, direction='DESCENDING'), tf.argsort(x)", sort(x[0], {.descending = true}),
         cast(argsort(x[0]), DType::i32));
EBB_GIVES("tf.math.top_k(x, 2)") {
  const TopK top = topk(x[0], 2);
  return Tensors{top.values, cast(top.indices, DType::i32)};
}
EBB_SAME("tf.matmul(x, y, transpose_b=True)", matmul(x[0], x[1], {.transpose_b = true}));
EBB_SAME("tf.linalg.matvec(x, v), tf.tensordot(x, v, 1)", matmul(x[0], x[1]), matmul(x[0], x[1]));

}  // namespace ebb::tests::parity
