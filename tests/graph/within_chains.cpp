// A chain computes each pointwise operator as the operator alone does.
#include <functional>
#include <thread>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Operator = std::function<Tensor(const Tensor&, const Tensor&)>;

// Of operators whose functions are written by hand, one for each functor.
std::vector<Operator> pointwise_operators() {
  std::vector<Operator> all = {
      [](const Tensor& x, const Tensor&) { return leaky_relu(x, 0.3); },
      [](const Tensor& x, const Tensor&) { return elu(x, 0.7); },
      [](const Tensor& x, const Tensor&) { return gelu(x); },
      [](const Tensor& x, const Tensor&) { return gelu(x, {.approximate = true}); },
      [](const Tensor& x, const Tensor&) { return clamp(x, -1.1, 0.9); },
      [](const Tensor& x, const Tensor& y) { return where(x < y, x, 0.3); },
      [](const Tensor& x, const Tensor&) { return cast(cast(x, DType::i32), x.dtype()); },
  };
#define EBB_UNARY(name, F) all.push_back([](const Tensor& x, const Tensor&) { return name(x); });
#define EBB_BINARY(name, F)                                                   \
  all.push_back([](const Tensor& x, const Tensor& y) { return name(x, y); }); \
  all.push_back([](const Tensor& x, const Tensor&) { return name(x, 1.1); }); \
  all.push_back([](const Tensor& x, const Tensor&) { return name(-0.3, x); });
#define EBB_MAP(name, F)
#define EBB_ZIP(name, F)
#define EBB_PAIR(name, F)
#include "ebb/core/kernels/functors/activations.inc"
#include "ebb/core/kernels/functors/arithmetic.inc"
#include "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/kernels/functors/extremes.inc"
#include "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/kernels/functors/rounding.inc"
#include "ebb/core/kernels/functors/trigonometry.inc"
#undef EBB_UNARY
#undef EBB_BINARY
#undef EBB_MAP
#undef EBB_ZIP
#undef EBB_PAIR
  return all;
}

}  // namespace

TEST_CASE("a chain gives the bits of its operators, which stand between products and sums") {
  constexpr std::int64_t kAtOnce = 4, kElements = 1021;
  const std::vector<Operator> all = pointwise_operators();
  const auto waves = [](std::int64_t count) {
    return 3 * sin(arange(static_cast<double>(count), {.dtype = DType::f32}) * 1.7);
  };
  const Tensor wide = reshape(waves(kElements), {kElements, 1}), row = waves(5),
               which = reshape(remainder(arange(kElements * 5.0, {.dtype = DType::i32}), 4),
                               {kElements, 5});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::size_t step_by = is_half(dtype) ? 4 * kAtOnce : kAtOnce;  // 16 bits compute in f32
    for (std::size_t first = 0; first < all.size(); first += step_by) {
      const auto step = [&](const Tensor& x, const Tensor& y, const Tensor& number) {
        const Tensor product = x * y;
        Tensor result = product;
        for (std::size_t k = 0; k < kAtOnce && first + k < all.size(); ++k)
          result = where(number == static_cast<double>(k), all[first + k](product, y) + y, result);
        return result;
      };
      const Tensor x = cast(wide, dtype), y = cast(row, dtype);
      INFO(name(dtype) << ", operators from number " << first << " on");
      CHECK(bytes_of(compile(step)(x, y, which)) == bytes_of(step(x, y, which)));
    }
  }
}

TEST_CASE("denormal constants are flushed on a thread that has run nothing yet", "[host]") {
  std::vector<float> values;
  std::thread([&] {
    Graph graph;
    const Tensor tiny = full(graph, {2}, 1e-30) * full(graph, {2}, 1e-10);
    values = Session(graph).run(where(tiny > 0, tiny, 5)).to_vector<float>();
  }).join();
  CHECK(values == std::vector<float>{5, 5});
}

TEST_CASE("operators of constants give the bits that they would give in a run") {
  const std::vector<Operator> all = pointwise_operators();
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto step = [&](const Tensor& x) {
        return all[k](full_like(x, 0.7), reshape(full_like(x, -1.3), {37, 1}));
      };
      INFO(name(dtype) << ", operator number " << k);
      CHECK(bytes_of(compile(step)(Tensor::zeros({37}, dtype))) ==
            bytes_of(step(Tensor::zeros({37}, dtype))));
    }
}

}  // namespace ebb::tests
