// Choosing by index and by condition.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("torch.index_select(x, 1, i), np.take(x, i, 1)", index_select(x[0], x[1], 1));
EBB_SAME("x[i]", index_select(x[0], x[1]));
EBB_SAME("np.take(x, i)", index_select(reshape(x[0], {-1}), x[1]));
EBB_SAME("torch.gather(x, 1, i), np.take_along_axis(x, i, 1)", gather(x[0], 1, x[1]));
EBB_SAME("x.index_add(0, i, v)", index_add(x[0], x[1], x[2], 0));
EBB_SAME("x.scatter_add(1, i, v)", scatter_add(x[0], 1, x[1], x[2]));
EBB_SAME("F.one_hot(i, 4)", cast(one_hot(x[0], 4), DType::i64));
EBB_SAME("F.embedding(i, w)", embedding(x[1], x[0]));
EBB_SAME("torch.where(c, x, y), np.where(c, x, y)", where(x[0], x[1], x[2]));
EBB_ROW("torch.where(x > 0, torch.sqrt(x), 0)") {
  row.holds([](const Tensors& x) { return Tensors{where(x[0] > 0, sqrt(x[0]), 0)}; });
  const Tensor x = row["x0"].with_grad();
  const Tensor safe = where(x > 0, sqrt(where(x > 0, x, 1)), 0);
  CHECK(numbers(gradients(sum(safe), {x})[0]) == std::vector<double>{0.25, 0, 0});
}
EBB_SAME("x.masked_fill(m, v)", masked_fill(x[0], x[1], 9));
EBB_SAME("x.select(1, 2)", select(x[0], 1, 2));
EBB_SAME("np.searchsorted(a, v)", sum(unsqueeze(x[0], 0) < unsqueeze(x[1], 1), 1));

}  // namespace ebb::tests::parity
