// Activations.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("torch.relu(x), F.relu(x)", relu(x[0]));
EBB_SAME("torch.relu(nan)", relu(x[0]));
EBB_SAME("F.relu6(x), F.hardtanh(x, 0, 6)", clamp(x[0], 0, 6));
EBB_ROW("the gradient of F.relu6 and F.hardtanh at their ends") {
  const Tensor x = Tensor::from({0.0, 6.0}).with_grad();
  CHECK(numbers(gradients(sum(clamp(x, 0, 6)), {x})[0]) == std::vector<double>{1, 1});
  CHECK(numbers(row["y0"]) == std::vector<double>{0, 0});
  CHECK(numbers(row["y1"]) == std::vector<double>{0, 0});
}
EBB_SAME("F.leaky_relu(x)", leaky_relu(x[0]));
EBB_SAME("F.elu(x)", elu(x[0]));
EBB_SAME("F.selu(x)", 1.0507009873554805 * elu(x[0], 1.6732632423543772));
EBB_SAME("F.silu(x)", silu(x[0]));
EBB_SAME("F.mish(x)", x[0] * tanh(softplus(x[0])));
EBB_SAME("F.gelu(x)", gelu(x[0]));
EBB_SAME("F.gelu(x, approximate='tanh')", gelu(x[0], {.approximate = true}));
EBB_SAME("torch.sigmoid(x)", sigmoid(x[0]));
EBB_SAME("F.logsigmoid(x)", -softplus(-x[0]));
EBB_SAME("F.softplus(x)", softplus(x[0]));
EBB_GIVES("F.softplus(x) beyond 20", 2e-9) { return Tensors{softplus(x[0])}; }
EBB_SAME("F.softsign(x), F.tanhshrink(x)", x[0] / (1 + abs(x[0])), x[0] - tanh(x[0]));
EBB_GIVES("F.glu(x)") {
  const Tensors halves = chunk(x[0], 2, -1);
  return Tensors{halves[0] * sigmoid(halves[1])};
}
EBB_SAME("F.prelu(x, a)", where(x[0] > 0, x[0], x[1] * x[0]));
EBB_SAME("F.softmax(x, dim=0), F.log_softmax(x, dim=-1)", softmax(x[0], 0), log_softmax(x[0]));
EBB_SAME("F.softmax with -inf and of -inf alone", softmax(x[0]), softmax(x[1]));
EBB_SAME("F.dropout(x, 0.5, training=False)", dropout(x[0], 0.5, Phase::inference));

}  // namespace ebb::tests::parity
