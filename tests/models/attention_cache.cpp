// Attention that keeps the keys and values of the steps before.
#include <cmath>

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
  const auto writer = [&](std::int64_t steps) {
    const Spec cache{DType::f32, {kOpen, 3, 6, 2}};
    return mode.function({{DType::f32, {kOpen, steps, 6}}, cache, cache, {DType::i64, {}}},
                         [&](const Tensors& in) -> Tensors {
                           const auto [output, cache] = attention(in[0], {in[1], in[2]}, in[3]);
                           return {output, cache.keys, cache.values};
                         });
  };
  const auto one = writer(1), two = writer(2);
  const auto whole = mode.function({{DType::f32, {kOpen, kOpen, 6}}}, [&](const Tensors& in) {
    return Tensors{attention(in[0], {.causal = true})};
  });
  const Tensor x = normal({2, 6, 6}), expected = whole({x})[0];
  Tensor keys = Tensor::full({2, 3, 6, 2}, 7), values = keys;
  const auto write = [&](const InMode::Function& function, std::int64_t begin, std::int64_t end) {
    const Tensors got =
        function({slice(x, begin, end, {.axis = 1}), keys, values, Tensor::from(begin)});
    keys = got[1];
    values = got[2];
    CAPTURE(begin, end);
    CHECK(distance(got[0], slice(expected, begin, end, {.axis = 1})) < 1e-6);
  };
  write(two, 0, 2);
  for (std::int64_t i = 2; i < 6; ++i) write(one, i, i + 1);
  write(one, 3, 4);  // once more, before keys that are there already
  write(two, 3, 5);
  const auto fails_at = [&](std::int64_t position) {
    const auto output = [&] {
      return two({slice(x, 0, 2, {.axis = 1}), keys, values, Tensor::from(position)})[0];
    };
    if (on_host())
      CHECK_ERROR(output(), Error, "[index_select]");
    else
      CHECK(std::isnan(sum(output()).item<float>()));
  };
  fails_at(-1);
  fails_at(5);
}

TEST_CASE("a cache that nobody else holds is written in its own memory", "[models]") {
  const NoGrad no_grad;
  const models::MultiHeadAttention attention(Parameters(Device::cpu()), 4);
  const auto step = [&](models::AttentionCache cache) {
    return attention(Tensor::zeros({1, 1, 4}), std::move(cache), Tensor::from(std::int64_t{2}));
  };
  models::AttentionCache cache{Tensor::zeros({1, 1, 5, 4}), Tensor::zeros({1, 1, 5, 4})};
  const models::AttentionCache kept = cache;
  const void* const memory = kept.values.impl()->storage.get();
  cache = step(cache).cache;
  CHECK(cache.values.impl()->storage.get() != memory);
  cache = step({Tensor(kept.keys), Tensor(kept.values)}).cache;
  const void* const own = cache.values.impl()->storage.get();
  cache = step(std::move(cache)).cache;
  CHECK(cache.values.impl()->storage.get() == own);
  CHECK_ERROR_HERE(attention(Tensor::zeros({1, 1, 4}), kept, Tensor::zeros({1})), ShapeError,
                   "[multi_head_attention] takes a cache [batch, heads, length");
  const Tensor begin = Tensor::from(std::int64_t{0}), wide = Tensor::zeros({1, 1, 5, 8});
  for (const models::AttentionCache& wrong :
       {models::AttentionCache{}, {kept.keys, {}}, {kept.keys, wide}, {wide, wide}})
    CHECK_ERROR_HERE(attention(Tensor::zeros({1, 1, 4}), wrong, begin), ShapeError,
                     "[multi_head_attention] takes a cache [batch, heads, length");
}

}  // namespace ebb::tests
