// Attention that keeps the keys and values of the steps before.
#include <cmath>
#include <limits>

#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/line.h"

namespace ebb::tests {

TEST_CASE("attention step by step is that of the whole sequence, in all modes", "[models]") {
  const NoGrad no_grad;  // a compiled step refuses results that gradients would be lost through
  const auto kind = GENERATE(InMode::eager, InMode::graph, InMode::compiled);
  const bool fused = GENERATE(false, true);
  CAPTURE(kind, fused);
  InMode mode(kind);
  const models::MultiHeadAttention attention(mode.parameters, 6, {.heads = 3, .fused_qkv = fused});
  const auto state = [&](const char* name) {
    return mode.parameters.state(name, {2, 3, 6, 2}, initializers::constant(7));
  };
  const models::AttentionCache cache{state("keys"), state("values")};
  const auto writer = [&](std::int64_t steps) {
    return mode.function({{DType::f32, {2, steps, 6}}, {DType::i64, {}}}, [&](const Tensors& in) {
      return Tensors{attention(in[0], cache, in[1]).output};
    });
  };
  const auto one = writer(1), two = writer(2);
  const auto whole = mode.function({{DType::f32, {kOpen, kOpen, 6}}}, [&](const Tensors& in) {
    return Tensors{attention(in[0], {.causal = true})};
  });
  const Tensor x = normal({2, 6, 6}), expected = whole({x})[0];
  const auto write = [&](const InMode::Function& function, std::int64_t begin, std::int64_t end) {
    const Tensors got = function({slice(x, begin, end, {.axis = 1}), Tensor::from(begin)});
    CAPTURE(begin, end);
    CHECK(distance(got[0], slice(expected, begin, end, {.axis = 1})) < 1e-6);
  };
  write(two, 0, 2);
  for (std::int64_t i = 2; i < 6; ++i) write(one, i, i + 1);
  write(one, 3, 4);  // once more, before keys that are there already
  write(two, 3, 5);
  const auto fails_at = [&](std::int64_t position) {
    const Tensor before = mode["keys"].clone();
    const auto output = [&] {
      return two({slice(x, 0, 2, {.axis = 1}), Tensor::from(position)})[0];
    };
    if (on_host())
      CHECK_ERROR(output(), Error, "out of range for 2 along an axis of 6");
    else
      CHECK(std::isnan(sum(output()).item<float>()));
    CHECK(bit_equal(mode["keys"], before));
  };
  fails_at(-1);
  fails_at(5);
  fails_at(std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a cache is written in its own memory", "[models]") {
  const NoGrad no_grad;
  const models::MultiHeadAttention attention(Parameters(Device::cpu()), 4);
  const auto step = [&](models::AttentionCache cache) {
    return attention(Tensor::zeros({1, 1, 4}), std::move(cache), Tensor::from(std::int64_t{2}));
  };
  models::AttentionCache cache{Tensor::zeros({1, 1, 5, 4}), Tensor::zeros({1, 1, 5, 4})};
  const models::AttentionCache kept = cache;
  cache = step(std::move(cache)).cache;
  CHECK(cache.values.impl()->storage.get() == kept.values.impl()->storage.get());
  CHECK_ERROR_HERE(attention(Tensor::zeros({1, 1, 4}), kept, Tensor::zeros({1})), ShapeError,
                   "[multi_head_attention] takes a cache [batch, heads, length");
  const Tensor begin = Tensor::from(std::int64_t{0}), wide = Tensor::zeros({1, 1, 5, 8});
  for (const models::AttentionCache& wrong :
       {models::AttentionCache{}, {kept.keys, {}}, {kept.keys, wide}, {wide, wide}})
    CHECK_ERROR_HERE(attention(Tensor::zeros({1, 1, 4}), wrong, begin), ShapeError,
                     "[multi_head_attention] takes a cache [batch, heads, length");
}

}  // namespace ebb::tests
