// Tensors and creation.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("torch.tensor([[1., 2.]])", Tensor::from({{1.f, 2.f}}));
EBB_SAME("np.array([[1., 2.]])", Tensor::from({{1.0, 2.0}}));
EBB_SAME("torch.zeros(2, 3), torch.ones(2, 3)", Tensor::zeros({2, 3}), ones({2, 3}));
EBB_SAME("torch.full((2, 3), 0.1)", Tensor::full({2, 3}, 0.1));
EBB_SAME("torch.zeros_like(x), torch.ones_like(x), np.zeros_like(x)", zeros_like(x[0]),
         ones_like(x[0]));
EBB_SAME("torch.full_like(x, 3), np.full_like(x, 3)", full_like(x[0], 3));
EBB_SAME("torch.arange(2, 9, 3), np.arange(2, 9, 3)", arange(2, 9, {.step = 3}));
EBB_SAME("np.arange(0, 1, 0.3)", arange(0, 1, {.step = 0.3, .dtype = DType::f64}));
EBB_SAME("torch.arange(0, 1, 0.3)", arange(0, 1, {.step = 0.3, .dtype = DType::f32}));
EBB_SAME("np.linspace(1, 2, 5)", linspace(1, 2, 5, {.dtype = DType::f64}));
EBB_SAME("torch.linspace(1, 2, 5)", linspace(1, 2, 5));
EBB_SAME("torch.eye(2, 3)", eye(2, {.columns = 3}));
EBB_SAME("np.eye(2, 3, k=1)", eye(2, {.columns = 3, .diagonal = 1, .dtype = DType::f64}));
EBB_SAME("torch.tril(x, -1), torch.triu(x, 1), np.tril(x, -1)", tril(x[0], -1), triu(x[0], 1));
EBB_SAME("x.to(torch.int32), x.astype(np.int32)", cast(x[0], DType::i32));
EBB_ROW("x.astype(np.int32) of NaN and beyond the range") {
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  CHECK(difference(row["y0"], Tensor::from({kLeast, kLeast, kLeast, kLeast, kLeast})) == "");
  CHECK(difference(cast(row["x0"], DType::i32), Tensor::from({0, kMost, kLeast, kMost, kLeast})) ==
        "");
}
EBB_SAME("x.to(torch.bool)", cast(x[0], DType::boolean));
EBB_SAME("x.to(torch.bfloat16)", cast(cast(x[0], DType::bf16), DType::f32));
EBB_SAME("x.half(), x.astype(np.float16)", cast(x[0], DType::f16));
EBB_SAME("x.clone()", x[0].clone());

}  // namespace ebb::tests::parity
