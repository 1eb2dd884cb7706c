// Arguments that may be given without their name: axes, and the first field of options. The result
// is bit for bit the same as with the name.
#include <array>
#include <concepts>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

// Whether two tensors are equal in shape, dtype and bits.
bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && bytes_of(a) == bytes_of(b);
}

Tensor numbers() {
  return Tensor::from({{0.5, 2.0, -1.0}, {4.0, 0.25, 3.0}, {1.0, -2.0, 0.75}, {2.5, 1.5, -0.5}});
}

// The ways to name axes of x [4, 3], each against the list of axes that it stands for.
#define EBB_CHECK_AXES(f, x)                                                          \
  {                                                                                   \
    const Tensor t = x;                                                               \
    const std::vector<int> list = {0, 1};                                             \
    const std::array<int, 1> one = {-1};                                              \
    const Axes axes = {0};                                                            \
    const std::vector<std::int64_t> longs = {0, 1};                                   \
    const std::vector far = {std::int64_t{1} << 32};                                  \
    const int both[] = {0, 1};                                                        \
    INFO(#f);                                                                         \
    CHECK(same(f(t, 1), f(t, {.axes = {1}})));                                        \
    CHECK(same(f(t, std::int64_t{-2}), f(t, {.axes = {0}})));                         \
    CHECK(same(f(t, {t.size(1) - 3}), f(t, {.axes = {0}})));                          \
    CHECK(same(f(t, {1}), f(t, {.axes = {1}})));                                      \
    CHECK(same(f(t, {0, 1}), f(t, {.axes = {0, 1}})));                                \
    CHECK(same(f(t, {-1, 0}), f(t)));                                                 \
    CHECK(same(f(t, list), f(t)));                                                    \
    CHECK(same(f(t, both), f(t)));                                                    \
    CHECK(same(f(t, one), f(t, {.axes = {1}})));                                      \
    CHECK(same(f(t, axes), f(t, {.axes = {0}})));                                     \
    CHECK(same(f(t, longs), f(t)));                                                   \
    CHECK(same(f(t, {}), f(t)));                                                      \
    CHECK(same(f(t, 1, true), f(t, {.axes = {1}, .keep = true})));                    \
    CHECK(same(f(t, {0}, false), f(t, {.axes = {0}})));                               \
    CHECK(same(f(t, list, true), f(t, {.keep = true})));                              \
    CHECK(same(f(t, {.axis = -2, .keep = true}), f(t, {.axes = {0}, .keep = true}))); \
    CHECK_ERROR(f(t, {0, 2}), ShapeError, line(__LINE__));                            \
    CHECK_ERROR(f(t, far), ShapeError, line(__LINE__));                               \
  }

}  // namespace

TEST_CASE("Axes stand alone in every reduction: a number, a list in braces, a range") {
  const Tensor x = numbers();
  EBB_CHECK_AXES(sum, x);       // the others are declared by the same macro
  EBB_CHECK_AXES(variance, x);  // with options of its own
  CHECK(same(mean(x, {0, 1}, true), mean(x, {.keep = true})));
  CHECK(same(max(x, {0, 1}, true), max(x, {.keep = true})));
  CHECK(same(min(x, {0, 1}, true), min(x, {.keep = true})));
  CHECK(same(prod(x, {0, 1}, true), prod(x, {.keep = true})));
  CHECK(same(logsumexp(x, {0, 1}, true), logsumexp(x, {.keep = true})));
  CHECK(same(standard_deviation(x, {0, 1}, true), standard_deviation(x, {.keep = true})));
  CHECK(same(any(x > 2, {0, 1}, true), any(x > 2, {.keep = true})));
  CHECK(same(all(x > 2, {0, 1}, true), all(x > 2, {.keep = true})));
}

TEST_CASE("Axes stand alone where they are all there is to say") {
  const Tensor x = numbers(), y = reshape(x, {1, 4, 1, 3});
  CHECK(same(squeeze(y, 0), reshape(x, {4, 1, 3})));
  CHECK(same(squeeze(y, {0, 2}), x));
  CHECK(same(squeeze(y, std::vector<int>{-4, -2}), x));
  enum { kBatch = 0, kTime = 2 };
  CHECK(same(squeeze(y, {kBatch, kTime}), x));
  CHECK(same(sum(y, {kTime}), sum(y, kTime)));
  CHECK(same(flip(x), flip(x, {0, 1})));
  CHECK(same(flip(x, 1), flip(x, {-1})));
  CHECK(same(flip(flip(x, Axes{0}), 1), flip(x)));
}

TEST_CASE("An axis stands alone where elements are put in order") {
  const Tensor x = numbers();
  CHECK(same(sort(x, 0), sort(x, {.axis = 0})));
  CHECK(same(argsort(x, 0), argsort(x, {.axis = 0})));
  CHECK(same(topk(x, 2, 0).values, topk(x, 2, {.axis = 0}).values));
  CHECK(same(topk(x, 2, 0).indices, topk(x, 2, {.axis = 0}).indices));
  CHECK(same(argmax(x, 0), argmax(x, {.axis = 0})));
  CHECK(same(argmin(x, {0}), argmin(x, {.axis = 0})));
}

TEST_CASE("A pool's kernel stands alone, or with its stride") {
  const Tensor x = reshape(arange(50, DType::f32), {1, 2, 5, 5}), row = reshape(x, {1, 50});
  CHECK(same(max_pool2d(x, 3), max_pool2d(x, {.kernel = 3})));
  CHECK(same(max_pool2d(x, 3, 1), max_pool2d(x, {.kernel = 3, .stride = 1})));
  CHECK(same(max_pool2d(x, 2, {2, 1}), max_pool2d(x, {.kernel = 2, .stride = {2, 1}})));
  CHECK(same(avg_pool2d(x, 3, 2), avg_pool2d(x, {.kernel = 3, .stride = 2})));
  CHECK(same(max_pool1d(row, 3, 2), max_pool1d(row, {.kernel = 3, .stride = 2})));
  CHECK(same(avg_pool1d(row, 3), avg_pool1d(row, {.kernel = 3})));
}

TEST_CASE("A reduction, a delta and a beta stand alone in losses") {
  const Tensor x = numbers(), y = flip(x), labels = Tensor::from({0, 2, 1, 1});
  const Tensor p = log_softmax(x), q = log_softmax(y), z = sigmoid(y);
  for (const LossReduction how : {LossReduction::mean, LossReduction::sum, LossReduction::none}) {
    CHECK(same(mse(x, y, how), mse(x, y, {.reduction = how})));
    CHECK(same(mae(x, y, how), mae(x, y, {.reduction = how})));
    CHECK(same(huber(x, y, how), huber(x, y, {.reduction = how})));
    CHECK(same(smooth_l1(x, y, how), smooth_l1(x, y, {.reduction = how})));
    CHECK(same(kl_divergence(p, q, how), kl_divergence(p, q, {.reduction = how})));
    CHECK(same(binary_cross_entropy_with_logits(x, z, how),
               binary_cross_entropy_with_logits(x, z, {.reduction = how})));
    CHECK(same(softmax_cross_entropy(x, labels, how),
               softmax_cross_entropy(x, labels, {.reduction = how})));
  }
  // Braces set the first field of the options, or none of them.
  CHECK(same(mse(x, y, {LossReduction::sum}), mse(x, y, LossReduction::sum)));
  CHECK(same(mse(x, y, {}), mse(x, y)));
  CHECK(same(huber(x, y, {}), huber(x, y)));
  CHECK(same(huber(x, y, 0.5), huber(x, y, {.delta = 0.5})));
  CHECK(same(huber(x, y, 2), huber(x, y, {.delta = 2})));
  CHECK(same(smooth_l1(x, y, 0.5f), smooth_l1(x, y, {.beta = 0.5})));
}

TEST_CASE("A dtype, a step and columns stand alone where tensors are made") {
  CHECK(same(zeros({2}, DType::i32), zeros({2}, {.dtype = DType::i32})));
  CHECK(same(zeros({2}, {}), zeros({2})));
  CHECK(same(ones({2, 1}, DType::f64), ones({2, 1}, {.dtype = DType::f64})));
  CHECK(same(full({2}, 3, DType::u8), full({2}, 3, {.dtype = DType::u8})));
  CHECK(same(arange(3, DType::f32), arange(3, {.dtype = DType::f32})));
  CHECK(same(arange(1, 3, DType::i32), arange(1, 3, {.dtype = DType::i32})));
  CHECK(same(arange(0, 10, 2), arange(0, 10, {.step = 2})));
  CHECK(same(linspace(0, 1, 3, DType::f64), linspace(0, 1, 3, {.dtype = DType::f64})));
  CHECK(same(eye(2, 3), eye(2, {.columns = 3})));
  CHECK(same(eye(2, DType::i64), eye(2, {.dtype = DType::i64})));
  CHECK_ERROR_HERE(arange(0, 1, 0.25), Error, "");  // integers unless a dtype is given
}

TEST_CASE("What a distribution is made of stands alone, as in the functions like a tensor") {
  const auto repeated = [](auto first, auto second) {
    set_seed(Seed{3});
    const Tensor a = first();
    set_seed(Seed{3});
    return same(a, second());
  };
  CHECK(repeated([] { return uniform({9}, -1, 1); },
                 [] { return uniform({9}, {.low = -1, .high = 1}); }));
  CHECK(repeated([] { return normal({9}, 5, 0.5); },
                 [] { return normal({9}, {.mean = 5, .standard_deviation = 0.5}); }));
  CHECK(repeated([] { return uniform({9}, DType::f64); },
                 [] { return uniform({9}, {.dtype = DType::f64}); }));
  CHECK(repeated([] { return normal({9}, DType::bf16); },
                 [] { return normal({9}, {.dtype = DType::bf16}); }));
  CHECK(repeated([] { return bernoulli({9}, 0.25); },
                 [] { return bernoulli({9}, {.probability = 0.25}); }));
  CHECK(repeated([] { return randint(0, 9, {9}, DType::i32); },
                 [] { return randint(0, 9, {9}, {.dtype = DType::i32}); }));
  Graph graph;
  const Tensor a = uniform(graph, {9}, 2, 3), b = normal(graph, {9}, 7, 0),
               c = bernoulli(graph, {9}, 1), d = randint(graph, 4, 5, {9}, DType::u8);
  CHECK(uniform(graph, {9}, DType::f64).dtype() == DType::f64);
  CHECK(normal(graph, {9}, DType::f16).dtype() == DType::f16);
  Session session(graph);
  CHECK(all(session.run(a) >= 2).item<bool>());
  CHECK(all(session.run(b) == 7).item<bool>());
  CHECK(all(session.run(c) == 1).item<bool>());
  CHECK(same(session.run(d), full({9}, 4, DType::u8)));
}

TEST_CASE("A mask, an epsilon, a phase and a list of layers stand alone") {
  const Tensor q = reshape(numbers(), {1, 4, 3});
  const Tensor mask = tril(ones({4, 4}, DType::boolean));
  CHECK(same(scaled_dot_product_attention(q, q, q, mask),
             scaled_dot_product_attention(q, q, q, {.mask = mask})));
  const Tensor one = ones({4}, DType::f64), zero = zeros({4}, DType::f64);
  CHECK(same(group_norm(q, 2, one, zero, 0.5), group_norm(q, 2, one, zero, {.epsilon = 0.5})));
  const auto trained = [&](auto normalised) {
    const Tensor m = zero.clone(), v = one.clone();
    return concat({reshape(normalised(m, v), {-1}), m, v});
  };
  CHECK(same(trained([&](const Tensor& m, const Tensor& v) {
               return batch_norm(q, one, zero, m, v, Phase::training);
             }),
             trained([&](const Tensor& m, const Tensor& v) {
               return batch_norm(q, one, zero, m, v, {.phase = Phase::training});
             })));
  const Tensor wide = ones({3, 8}, DType::f64), bias = zeros({8}, DType::f64);
  const LstmWeights layer = {wide, slice(wide, 0, 2), bias};
  CHECK(same(lstm(q, {layer}).sequence, lstm(q, std::array{layer}).sequence));
  const Tensor narrow = ones({3, 6}, DType::f64);
  const GruWeights gates = {narrow, slice(narrow, 0, 2), bias};
  CHECK(same(gru(q, {gates}, {}).sequence, gru(q, std::array{gates}).sequence));
}

// Arguments that could mean two things do not compile.
template <class X>
concept NormOfANumber = requires(const X& x) {
  norm(x, 1);
};  // p or an axis
static_assert(!NormOfANumber<Tensor>);
template <class X>
concept SumKeeping = requires(const X& x) {
  sum(x, {0, true});
}
|| requires(const X& x) { sum(x, {true}); }
|| requires(const X& x) { sum(x, true); };  // .keep or axis 1
static_assert(!SumKeeping<Tensor>);
template <class X>
concept SortDescending = requires(const X& x) {
  sort(x, true);
}
|| requires(const X& x) { argsort(x, true); }
|| requires(const X& x) { topk(x, 2, true); };
static_assert(!SortDescending<Tensor>);
template <class X>
concept LayerNormUnnamed = requires(const X& x) {
  layer_norm(x, {{}, 2});
}
|| requires(const X& x) { layer_norm(x, {{}}); };
static_assert(!LayerNormUnnamed<Tensor>);
static_assert(!std::constructible_from<InlineVector<Padding, kMaxRank>, int, int>);

}  // namespace ebb::tests
