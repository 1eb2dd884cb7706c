// Operators at the sizes at which kernels cut their work. Every node of a row's program, and of its
// gradients, is compared with its reference.
#include <limits>

#include "ebb/core/kernels/norm.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/core/ops/where.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests::sizes {
namespace {

using Call = std::function<Tensors(const Tensors&)>;

// Results of the call, and the gradients of the sum of their squares.
Tensors with_gradients(const Call& call, const Tensors& in) {
  Tensors results = call(in), floating;
  const Tensor total = sum_of_squares(results);
  for (const Tensor& x : in)
    if (is_floating(x.dtype())) floating.push_back(x);
  if (total.defined() && !floating.empty())
    for (const Tensor& gradient : gradients(total, floating)) results.push_back(gradient);
  return results;
}

void check(const std::vector<SampleInput>& inputs, DType dtype, const Call& call,
           bool differentiable = true) {
  const Call all = [&](const Tensors& in) {
    return differentiable ? with_gradients(call, in) : call(in);
  };
  CHECK(unlike_references(inputs, dtype, all, 100) == "");
}

// A GPU has the same kernels for every dtype, so the emulated one tries f32 alone.
std::vector<DType> dtypes() {
  if (on_emulated_cuda()) return {DType::f32};
  return {DType::f32, DType::f64};
}

std::vector<DType> every_dtype() {
  if (on_emulated_cuda()) return {DType::f32, DType::i64, DType::boolean};
  return {DType::f32, DType::f64, DType::f16, DType::bf16,
          DType::i32, DType::i64, DType::u8,  DType::boolean};
}

Values any_of(DType dtype) {
  return dtype == DType::boolean ? Values::flags : is_floating(dtype) ? Values::any : Values::count;
}

}  // namespace

TEST_CASE("Rows and columns of any length are reduced, and put in order, as the references do",
          "[concurrent]") {
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{1, 70'001, 1}, Shape{40, 1, 30}, Shape{3, 1000, 2}, Shape{9, 33, 5},
        Shape{2, 300, 35}, Shape{3, 2, 700}, Shape{700, 3, 2}, Shape{4, 1500, 1}}) {
    for (const DType dtype : dtypes()) {
      check({{shape}}, dtype,
            EBB_CALL(sum(in[0], 1), mean(in[0], 1), max(in[0], 1), logsumexp(in[0], 1),
                     norm(in[0], {.axes = {1}})));
      check({{shape}}, dtype,
            EBB_CALL(sum(in[0]), variance(in[0], 1), norm(in[0], {.p = 1, .axes = {1}}),
                     min(in[0], {.axes = {0, 2}})));
    }
    for (const DType dtype : every_dtype()) {
      if (on_emulated_cuda() && shape.elements() > 10'000 && dtype != DType::f32) continue;
      const auto values = any_of(dtype);
      check({{shape, values, dtype}}, DType::f32,
            EBB_CALL(max(in[0], 1), min(in[0], 1), argmax(in[0], 1), argmin(in[0], 1),
                     argmax(in[0]), argmin(in[0], 1, true)),
            false);
      if (is_floating(dtype)) continue;
      check(
          {{shape, values, dtype}}, DType::f32,
          [](const Tensors& in) -> Tensors {
            const Tensor& x = in[0];
            if (x.dtype() != DType::boolean) return {sum(x, 1), sum(x, 0), sum(x)};
            return {any(x, 1), all(x, 1), any(x), all(x), sum(x, 0), any(x, 0), all(x, 0)};
          },
          false);
    }
  }
}

TEST_CASE("softmax along any axis is that of the references, of any number of classes") {
  for (const DType dtype : dtypes())
    for (const Shape& shape :
         {Shape{2, 300, 33}, Shape{3, 700, 5}, Shape{200, 3, 33}, Shape{2, 1025, 1}})
      check({{shape}}, dtype, EBB_CALL(softmax(in[0], 1), log_softmax(in[0], 1)));
}

TEST_CASE("Rows of any length are sorted, equals in their order, of every dtype", "[concurrent]") {
  for (const DType dtype : every_dtype())
    for (const Shape& shape : {Shape{3, 1}, Shape{300, 2}, Shape{5, 37}, Shape{2, 1024},
                               Shape{2, 1025}, Shape{8, 1025}, Shape{1, 5000}}) {
      if (shape.elements() > 3000 && dtype != DType::f32) continue;
      for (const Values values : {any_of(dtype), Values::labels})
        for (const bool descending : {false, true})
          check(
              {{shape, values, dtype}}, DType::f32,
              [&](const Tensors& in) {
                const Tensor& x = in[0];
                Tensors all = {argsort(x, {.descending = descending}),
                               sort(transpose(x), {.axis = 0, .descending = descending})};
                for (const std::int64_t k :
                     {std::int64_t{1}, std::int64_t{100}, std::int64_t{200}, shape[-1]})
                  if (k <= shape[-1]) all.push_back(topk(x, k, {.largest = descending}).values);
                return all;
              },
              false);
    }
}

TEST_CASE("Rows and columns of any length have the running sums and products of the references",
          "[concurrent]") {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64})
    for (const Shape& shape : {Shape{1, 13'000, 1}, Shape{3, 1024, 1}, Shape{2, 33, 40},
                               Shape{1, 1100, 3}, Shape{500, 3, 1}, Shape{2, 200, 70}})
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true})
          check(
              {{shape, any_of(dtype), dtype}}, DType::f32,
              [&](const Tensors& in) -> Tensors {
                const Tensor sums = cumsum(in[0], 1, {.exclusive = exclusive, .reverse = reverse});
                if (!is_floating(dtype)) return {sums};  // products wrap around
                return {sums, cumprod(in[0], 1, {.exclusive = exclusive, .reverse = reverse})};
              },
              false);
}

TEST_CASE("Long rows, and many, are compared and chosen from wherever they broadcast") {
  for (const DType dtype : every_dtype())
    for (const std::int64_t columns : {1, 7, 511, 512, 513, 40'001}) {
      if (on_emulated_cuda() && columns > 1000 && dtype != DType::f32) continue;
      const std::int64_t rows = columns > 1000 ? 2 : 33;
      const auto values = any_of(dtype);
      check({{{rows, columns}, Values::flags},
             {{rows, columns}, values, dtype},
             {{1, columns}, values, dtype},
             {{rows, 1}, values, dtype}},
            DType::f32, [](const Tensors& in) -> Tensors {
              const Tensor &on = in[0], &x = in[1], &row = in[2], &column = in[3];
              return {
                  where(on, x, row), where(on, column, x), where(on, 1, x), masked_fill(x, on, 1),
                  (x <= row),        (column >= x),        (x <= 1),        on & (x == row)};
            });
    }
}

TEST_CASE("Products of any size are those of the references, transposed or not", "[concurrent]") {
  for (const DType dtype : dtypes())
    for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{150, 17, 70},
                                  {1, 150, 1},
                                  {7, 1, 140},
                                  {33, 129, 65},
                                  {150, 2, 20},
                                  {20, 131, 512},
                                  {512, 131, 20},
                                  {16, 300, 17}}) {
      // f32 alone packs the rows of 512.
      if (std::max(m, n) == 512 && dtype != DType::f32) continue;
      for (const bool a : {false, true})
        for (const bool b : {false, true})
          check({{a ? Shape{k, m} : Shape{m, k}}, {b ? Shape{n, k} : Shape{k, n}}, {{n}}}, dtype,
                [&](const Tensors& in) -> Tensors {
                  const Tensor product = matmul(in[0], in[1], {.transpose_a = a, .transpose_b = b});
                  if (a || b) return {product};
                  return {product, dense(in[0], in[1], in[2], Activation::tanh)};
                });
    }
}

TEST_CASE("Convolutions of any size are those of the references") {
  const auto conv = [](const Shape& x, const Shape& w, const Conv2dOptions& options) {
    for (const DType dtype : dtypes())
      check({{x}, {w}, {{w[0]}}}, dtype, EBB_CALL(conv2d(in[0], in[1], in[2], options)));
  };
  conv({2, 4, 31, 37}, {6, 4, 3, 3}, {.padding = {1, 1}});
  conv({2, 6, 25, 26}, {70, 3, 2, 5}, {.stride = {2, 3}, .dilation = {3, 1}, .groups = 2});
  // Groups of one channel, with each stride.
  for (const int stride : {1, 2, 3})
    conv({2, 3, 19, 150}, {6, 1, 5, 4},
         {.stride = {2, stride}, .padding = {2, 1}, .dilation = {1, 3}, .groups = 3});
  conv({1, 1, 152, 140}, {2, 1, 3, 3}, {.padding = 1});
  conv({1, 4, 17, 15}, {4, 1, 3, 3}, {.padding = 1, .groups = 4});  // 1 beyond whole vectors
  // oneDNN's own kernels: pieces of images and channels, with some left over.
  conv({5, 3, 32, 32}, {20, 3, 3, 3}, {.padding = 1});
  conv({5, 70, 8, 7}, {20, 70, 3, 2}, {.padding = {1, 0}});
  conv({17, 20, 4, 4}, {70, 20, 3, 3}, {.padding = 1});
  conv({2, 40, 5, 5}, {40, 20, 3, 3}, {.padding = 1, .groups = 2});
  conv({70, 70, 7, 6}, {70, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 70});
  conv({5, 72, 4, 5}, {72, 8, 3, 2}, {.padding = 1, .groups = 9});
  conv({3, 20, 19, 18}, {33, 20, 3, 3}, {.stride = 2, .padding = 1, .dilation = {1, 2}});
  conv({1, 1, 1, 9}, {1, 1, 1, 3}, {.padding = {0, 1}});
  // Strides whose products no number holds.
  conv({1, 16, 5, 5}, {16, 16, 3, 3}, {.stride = std::numeric_limits<std::int32_t>::max()});
  conv({1, 1, 9, 9}, {1, 1, 4, 4},
       {.stride = 1 << 30, .padding = std::int64_t{3} << 29, .dilation = 1 << 30});
  conv({2, 70, 6, 7}, {5, 70, 1, 1}, {});
  conv({2, 3, 6, 5}, {4, 3, 1, 1}, {.padding = {0, 2}});
  conv({2, 3, 6, 5}, {4, 3, 1, 1}, {.padding = {1, 0}});
  conv({2, 3, 6, 5}, {4, 3, 1, 1}, {.stride = {1, 2}});
  conv({2, 3, 6, 5}, {4, 3, 1, 1}, {.stride = {2, 1}});
  conv({1, 40, 9, 8}, {3, 40, 3, 3}, {.stride = {2, 2}, .padding = {2, 0}});
  const auto transposed = [](const Shape& x, const Shape& w,
                             const ConvTranspose2dOptions& options) {
    for (const DType dtype : dtypes())
      check({{x}, {w}, {{w[1] * options.groups}}}, dtype,
            EBB_CALL(conv_transpose2d(in[0], in[1], in[2], options)));
  };
  transposed({2, 6, 31, 37}, {6, 4, 3, 3}, {.padding = {1, 1}});
  transposed({2, 6, 9, 11}, {6, 35, 2, 5}, {.stride = {2, 3}, .dilation = {3, 1}, .groups = 2});
  transposed({2, 5, 6, 7}, {5, 70, 1, 1}, {});
  transposed({1, 3, 5, 4}, {3, 40, 4, 4}, {.stride = 2, .padding = 1});
  transposed({2, 2, 3, 2}, {2, 3, 3, 2}, {.stride = {3, 2}, .output_padding = {2, 1}});
  transposed({2, 2, 3, 1}, {2, 1, 2, 1}, {.stride = {5, 1}, .padding = {2, 0}});
  // Output padding of the stride or more, but less than the dilation.
  transposed({2, 4, 3, 2}, {4, 2, 2, 3},
             {.stride = {2, 1}, .padding = {3, 1}, .output_padding = {3, 2}, .dilation = {4, 3}});
}

TEST_CASE("Pools of rows of many windows are those of the references") {
  for (const DType dtype : dtypes())
    for (const auto& [height, width] : {std::pair{2, 700}, {9, 5}, {4, 258}, {1, 1}, {3, 20}})
      for (const std::int64_t kernel : {1, 2, 3, 5, 20})
        for (const std::int64_t stride : {1, 2, 3})
          for (const std::int64_t padding : {0, 1, 2}) {
            const std::int64_t high = std::min<std::int64_t>(kernel, 2);
            if (padding > kernel / 2 || high > height || kernel > width + 2 * padding) continue;
            const Size2d size = {high, kernel}, by = {1, stride}, around = {0, padding};
            check({{{2, height, width}}}, dtype,
                  EBB_CALL(max_pool2d(in[0], {.kernel = size, .stride = by, .padding = around}),
                           avg_pool2d(in[0], {.kernel = size,
                                              .stride = by,
                                              .padding = around,
                                              .count_include_pad = padding % 2 == 1})));
          }
}

TEST_CASE("Attention of more queries and keys than a tile has is that of the references",
          "[concurrent]") {
  const struct {
    std::int64_t heads, queries, depth;
    SampleInput mask;
    bool causal;
  } cases[] = {{1, 270, 3, {{}}, true},
               {1, 270, 3, {{270, 290}, Values::flags}, true},
               {2, 70, 3, {{2, 1, 290}, Values::flags}, false},
               {1, 70, 19, {{1, 70, 290}}, false},
               {1, 270, 3, {{270, 1}}, true}};
  for (const auto& [heads, queries, depth, mask, causal] : cases)
    check({{{heads, queries, depth}}, {{heads, 290, depth}}, {{heads, 290, 2}}, mask},
          dtypes().back(), [&, causal = causal](const Tensors& in) -> Tensors {
            AttentionOptions options{.causal = causal};
            if (in[3].rank() > 0) options.mask = in[3];
            return {scaled_dot_product_attention(in[0], in[1], in[2], options)};
          });
}

TEST_CASE("Losses of many rows, or of many classes, are those of the references", "[concurrent]") {
  for (const auto& [rows, classes] :
       {std::pair{300, 7}, std::pair{5000, 7}, std::pair{1200, 40}, std::pair{20, 3000}})
    for (const LossReduction how : {LossReduction::mean, LossReduction::sum}) {
      if (how == LossReduction::sum && rows > 1000) continue;
      check({{{rows, classes}}, {{rows}, Values::draw}}, DType::f64,
            [&, classes = classes](const Tensors& in) -> Tensors {
              const Tensor weights = cast(remainder(arange(classes), 4), DType::f64) + 0.5;
              return {softmax_cross_entropy(
                  in[0], remainder(in[1], classes),
                  {.weights = weights, .ignored_label = 3, .reduction = how})};
            });
    }
}

TEST_CASE("Norms of many rows and channels are those of the references", "[concurrent]") {
  const auto norm = [](const Shape& shape, int axis, const Call& call) {
    const Shape channels{shape[axis]};
    check({{shape}, {channels}, {channels}, {channels}, {channels, Values::positive}}, DType::f64,
          call);
  };
  norm({2100, 33}, 1, EBB_CALL(layer_norm(in[0], in[1], in[2])));
  for (const Shape& shape : {Shape{1000, 6, 12}, Shape{40, 6, 300}, Shape{2, 36, 1000}})
    norm(shape, 1, EBB_CALL(group_norm(in[0], 3, in[1], in[2])));
  for (const auto& [shape, axis] :
       {std::pair{Shape{2100, 33}, 1}, std::pair{Shape{50, 3, 500}, 1},
        std::pair{Shape{1000, 5, 14}, 1}, std::pair{Shape{20, 100, 40}, 2}})
    norm(shape, axis, [axis = axis](const Tensors& in) -> Tensors {
      const NormAttributes how{.epsilon = 1e-3,
                               .momentum = 0.5,
                               .kind = NormAttributes::batch,
                               .number = axis,
                               .has_scale = true,
                               .has_shift = true};
      const Input given[] = {in[0], in[1], in[2], in[3], in[4]};
      return {apply(batch_norm_op, given, how, {})[0]};
    });
}

TEST_CASE("Parts and elements are found and added wherever they are, however many",
          "[concurrent]") {
  const auto numbers = [](const Tensor& drawn, std::int64_t below) {
    return remainder(drawn, static_cast<double>(below));
  };
  for (const std::int64_t rows : {1, 40, 9000})
    for (const std::int64_t features : {1, 8, 300})
      for (const std::int64_t chosen : {1, 255, 700}) {
        if (rows * features > 400'000) continue;
        check({{{rows, features}}, {{chosen}, Values::draw}, {{chosen, features}}}, DType::f32,
              [&](const Tensors& in) -> Tensors {
                const Tensor at = numbers(in[1], rows);
                return {index_select(in[0], at), index_add(in[0], at, in[2])};
              });
      }
  for (const Shape& shape : {Shape{1, 20'000, 1}, Shape{3, 9000, 1}, Shape{2, 70, 300},
                             Shape{300, 5, 2}, Shape{1, 3, 35'000}})
    for (const std::int64_t chosen : {1, 7, 600}) {
      const Shape parts{shape[0], chosen, shape[2]};
      if (parts.elements() > 400'000) continue;
      check({{shape}, {parts, Values::draw}, {parts}}, DType::f32,
            [&](const Tensors& in) -> Tensors {
              const Tensor at = numbers(in[1], shape[1]);
              return {gather(in[0], 1, at), scatter_add(in[0], 1, at, in[2])};
            });
    }
}

}  // namespace ebb::tests::sizes
