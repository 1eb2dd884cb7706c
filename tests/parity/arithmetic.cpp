// Arithmetic and functions element by element.
#include <cmath>

#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("x + y, x - y, x * y, x / y", x[0] + x[1], x[0] - x[1], x[0] * x[1], x[0] / x[1]);
EBB_SAME("[2, 1] + [3]", x[0] + x[1]);
EBB_SAME("x + 1, 2 - x, 3 / x", x[0] + 1, 2 - x[0], 3 / x[0]);
EBB_SAME("1 / 0, -1 / 0, 0 / 0 of floats", x[0] / 0);
EBB_SAME("i32 + 1, i32 * 2 beyond the range", x[0] + 1, x[0] * 2);
EBB_SAME("u8 + u8 beyond the range", x[0] + x[0], x[0] - 4);
EBB_SAME("i / j of integers", cast(x[0], DType::f32) / cast(x[1], DType::f32));
EBB_SAME("np.divide(i, j) of integers", cast(x[0], DType::f64) / cast(x[1], DType::f64));
EBB_SAME("i // j, i % j of integers", floor_divide(x[0], x[1]), remainder(x[0], x[1]));
EBB_SAME("i // 0, i % 0 of integers", floor_divide(x[0], zeros_like(x[0])),
         remainder(x[0], zeros_like(x[0])));
EBB_SAME("torch.remainder(x, y), np.mod(x, y)", remainder(x[0], x[1]));
EBB_SAME("torch.floor_divide(x, y), np.floor_divide(x, y)", floor_divide(x[0], x[1]));
EBB_SAME("torch.fmod(x, y), np.fmod(x, y)", x[0] - x[1] * trunc(x[0] / x[1]));
EBB_SAME("x // 0, x % 0 of floats", floor_divide(x[0], zeros_like(x[0])),
         remainder(x[0], zeros_like(x[0])));
EBB_SAME("-x, torch.square(x), torch.sqrt(x), np.sqrt(x)", -x[0], square(x[0]), sqrt(x[0]));
EBB_SAME("torch.exp(x), np.exp(x)", exp(x[0]));
EBB_SAME("torch.expm1(x), np.expm1(x)", expm1(x[0]));
EBB_SAME("torch.sin(x), np.sin(x)", sin(x[0]));
EBB_SAME("torch.cos(x), np.cos(x)", cos(x[0]));
EBB_SAME("torch.tanh(x), np.tanh(x)", tanh(x[0]));
EBB_SAME("torch.log(x), np.log(x)", log(x[0]));
EBB_SAME("torch.log1p(x), np.log1p(x)", log1p(x[0]));
EBB_SAME("torch.log2(x), np.log2(x)", log2(x[0]));
EBB_SAME("torch.log10(x), np.log10(x)", log10(x[0]));
EBB_SAME("torch.tan(x), np.tan(x)", tan(x[0]));
EBB_SAME("torch.asin(x), np.arcsin(x)", asin(x[0]));
EBB_SAME("torch.acos(x), np.arccos(x)", acos(x[0]));
EBB_SAME("torch.atan(x), np.arctan(x)", atan(x[0]));
EBB_SAME("torch.sinh(x), np.sinh(x)", sinh(x[0]));
EBB_SAME("torch.cosh(x), np.cosh(x)", cosh(x[0]));
EBB_SAME("torch.asinh(x), np.arcsinh(x)", asinh(x[0]));
EBB_SAME("torch.acosh(x), np.arccosh(x)", acosh(x[0]));
EBB_SAME("torch.atanh(x), np.arctanh(x)", atanh(x[0]));
EBB_SAME("torch.exp2(x), np.exp2(x)", exp2(x[0]));
EBB_SAME("torch.atan2(y, x), np.arctan2(y, x)", atan2(x[0], x[1]));
EBB_SAME("torch.rsqrt(x), torch.reciprocal(x)", rsqrt(x[0]), 1 / x[0]);
EBB_SAME("torch.erf(x)", erf(x[0]));
EBB_SAME("np.sqrt, np.log, np.exp at the ends", sqrt(x[0]), log(x[0]), exp(x[0]));
EBB_SAME("torch.pow(x, y), np.power(x, y)", pow(x[0], x[1]));
EBB_SAME("0 ** 0, nan ** 0, (-8) ** (1 / 3)", pow(x[0], x[1]));
EBB_SAME("torch.abs(x)", abs(x[0]));
EBB_SAME("torch.sign(x), np.sign(x)", sign(x[0]));
EBB_SAME("np.sign(nan)", sign(x[0]));
EBB_ROW("torch.sign(nan)") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(difference(row["y0"], Tensor::from({0.0, 0.0, 1.0, -1.0, 1.0, -1.0, 0.0})) == "");
  CHECK(difference(sign(row["x0"]), Tensor::from({0.0, 0.0, 1.0, -1.0, 1.0, -1.0, nan})) == "");
}
EBB_SAME("torch.floor(x), torch.ceil(x), torch.trunc(x), np.trunc(x)", floor(x[0]), ceil(x[0]),
         trunc(x[0]));
EBB_SAME("torch.round(x), np.round(x)", round(x[0]));
EBB_SAME("torch.maximum(x, y), torch.minimum(x, y), np.maximum(x, y)", maximum(x[0], x[1]),
         minimum(x[0], x[1]));
EBB_SAME("np.fmax(x, y)", where(isnan(x[0]), x[1], where(isnan(x[1]), x[0], maximum(x[0], x[1]))));
EBB_SAME("torch.clamp(x, -1, 1), np.clip(x, -1, 1)", clamp(x[0], -1, 1));
EBB_ROW("the gradient of torch.clamp at its bounds") {
  const Tensor x = Tensor::from({-1.0, 1.0}).with_grad();
  CHECK(numbers(gradients(sum(clamp(x, -1, 1)), {x})[0]) == std::vector<double>{1, 1});
  CHECK(numbers(row["y0"]) == std::vector<double>{0, 0});
}
EBB_SAME("x == y, x != y, x < y, x <= y, x > y, x >= y", x[0] == x[1], x[0] != x[1], (x[0] < x[1]),
         x[0] <= x[1], (x[0] > x[1]), x[0] >= x[1]);
EBB_SAME("np.float32(0.1) == 0.1", x[0] == 0.1);
EBB_SAME("a & b, a | b, a ^ b, ~a of bool", x[0] & x[1], x[0] | x[1], x[0] ^ x[1], !x[0]);
EBB_SAME("torch.isnan(x), torch.isinf(x), torch.isfinite(x), np.isnan(x)", isnan(x[0]), isinf(x[0]),
         isfinite(x[0]));
EBB_SAME("np.isclose(x, y)",
         ((abs(x[0] - x[1]) <= 1e-8 + 1e-5 * abs(x[1])) & isfinite(x[1])) | (x[0] == x[1]));
EBB_SAME("torch.lerp(x, y, w), torch.addcmul(x, y, z)", x[0] + 0.3 * (x[1] - x[0]),
         x[0] + x[1] * x[2]);

}  // namespace ebb::tests::parity
