// Reductions and running sums.

#include "ebb/tests/infinity.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), np.sum(x)", sum(x[0]), sum(x[0], 1),
         sum(x[0], {.axes = {0, 2}, .keep = true}));
EBB_SAME("x.sum() of f16", sum(x[0]));
EBB_SAME("x.mean(), x.mean(-1), np.mean(x)", mean(x[0]), mean(x[0], -1));
EBB_SAME("x.sum() of i32, u8 and bool", sum(x[0]), sum(x[1]), sum(x[2]));
EBB_SAME("np.sum of i32 and bool", sum(x[0]), sum(x[1]));
EBB_SAME("the sum and mean of nothing", sum(x[0], 1), mean(x[0], 1));
EBB_SAME("torch.amax(x, 1), torch.amin(x, 1), np.max(x, 1)", max(x[0], 1), min(x[0], 1));
EBB_SAME("torch.max(x, 1)", max(x[0], 1), argmax(x[0], 1));
EBB_ROW("the gradient of torch.max(x, 0) at ties") {
  const Tensor x = Tensor::from({3.0, 1.0, 3.0, 2.0}).with_grad();
  CHECK(numbers(gradients(max(x, 0), {x})[0]) == std::vector<double>{0.5, 0, 0.5, 0});
  CHECK(numbers(row["y0"]) == std::vector<double>{1});  // the largest
  CHECK(numbers(row["y1"]) == std::vector<double>{1});  // their sum
}
EBB_SAME("the max of NaN", max(x[0], 1), min(x[0], 1));
EBB_SAME("x.max(), x.min() of integers", max(x[0]), min(x[0]));
EBB_SAME("np.argmax(x, 1), np.argmin(x, 1) with ties", argmax(x[0], 1), argmin(x[0], 1));
EBB_SAME("torch.argmax(x), torch.argmin(x, 1, keepdim=True), np.argmax(x)", argmax(x[0]),
         argmin(x[0], {.axis = 1, .keep = true}));
EBB_SAME("the argmax of NaN", argmax(x[0], 1), argmin(x[0], 1));
EBB_SAME("torch.any(b, 1), torch.all(b, 1), np.any(b, 1)", any(x[0], 1), all(x[0], 1));
EBB_SAME("np.any([]), np.all([])", any(x[0]), all(x[0]));
EBB_SAME("np.any(x) of numbers", any(x[0] != 0, 1));
EBB_SAME("torch.var(x, 1), torch.std(x, 1)", variance(x[0], {.axis = 1, .correction = 1}),
         standard_deviation(x[0], {.axis = 1, .correction = 1}));
EBB_SAME("torch.var(x, 1, correction=0), np.var(x, 1), np.std(x, 1)", variance(x[0], 1),
         standard_deviation(x[0], 1));
EBB_SAME("the variance of one element", variance(x[0]), variance(x[0], {.correction = 1}));
EBB_SAME("torch.linalg.vector_norm(x, dim=1), np.linalg.norm(x, axis=1)", norm(x[0], {.axis = 1}));
EBB_SAME("torch.linalg.vector_norm(x, 1), np.linalg.norm(x, np.inf)", norm(x[0], {.p = 1}),
         norm(x[0], {.p = kInfinity64}));
EBB_SAME("the norm's gradient at 0", norm(x[0]));
EBB_SAME("torch.logsumexp(x, 1)", logsumexp(x[0], 1));
EBB_SAME("logsumexp of nothing and of -inf", logsumexp(x[0], 1), logsumexp(x[1], 0));
EBB_SAME("torch.cumsum(x, 1), np.cumsum(x, 1)", cumsum(x[0], 1));
EBB_SAME("torch.cumprod(x, 1), np.cumprod(x, 1)", cumprod(x[0], 1));
EBB_SAME("torch.cumprod(x, 1) of zeros", cumprod(x[0], 1));
EBB_SAME("np.cumsum(x)", cumsum(reshape(x[0], {-1}), 0));
EBB_ROW("torch.cumsum(x, 0) of i32") {
  row.holds([](const Tensors& x) { return Tensors{cumsum(cast(x[0], DType::i64), 0)}; });
  CHECK(cumsum(row["x0"], 0).dtype() == DType::i32);
}
EBB_SAME("torch.prod(x, 1), np.prod(x, 1)", prod(x[0], 1));
EBB_SAME("torch.count_nonzero(x), np.count_nonzero(x)", sum(x[0] != 0));
EBB_SAME("np.diff(x)", slice(x[0], 1, kEnd, {.axis = -1}) - slice(x[0], 0, -1, {.axis = -1}));
EBB_SAME("np.nansum(x), torch.nansum(x)", sum(masked_fill(x[0], isnan(x[0]), 0)));

}  // namespace ebb::tests::parity
