// Convolutions and pools: one axis, empty inputs, refusals.
#include "ebb/core/ops/conv.h"

#include <limits>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

Tensor filled(const Shape& shape, std::int64_t step) {
  Doubles values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((i * step + i / 53) % 23 - 11));
  return Tensor::from(values, shape);
}

}  // namespace

TEST_CASE("convolutions along one axis are those of images of height 1") {
  const Tensor x = filled({2, 3, 7}, 7).with_grad(), w = filled({3, 3, 4}, 5).with_grad(),
               b = filled({3}, 3).with_grad();
  const Tensor images = unsqueeze(x, 2), filters = unsqueeze(w, 2);
  const auto same = [&](const Tensor& y, const Tensor& expected) {
    REQUIRE(unsqueeze(y, 2).shape() == expected.shape());
    CHECK(y.to_vector<double>() == expected.to_vector<double>());
    const Tensors got = gradients(sum(square(y)), {x, w, b}, {.retain_graph = true}),
                  of_images = gradients(sum(square(expected)), {x, w, b}, {.retain_graph = true});
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i].to_vector<double>() == of_images[i].to_vector<double>());
  };
  const Conv1dOptions one{.stride = 2, .padding = 1};
  const Conv2dOptions row{.stride = {1, 2}, .padding = {0, 1}};
  same(conv1d(x, w, one), conv2d(images, filters, row));
  same(conv1d(x, w, b, one), conv2d(images, filters, b, row));
  same(conv1d(x * 2, w + 1, one), conv2d(images * 2, filters + 1, row));
  for (const std::int64_t more : {0, 2}) {
    const ConvTranspose1dOptions one_back{
        .stride = 2, .padding = 3, .output_padding = more, .dilation = 3};
    const ConvTranspose2dOptions row_back{
        .stride = {1, 2}, .padding = {0, 3}, .output_padding = {0, more}, .dilation = {1, 3}};
    same(conv_transpose1d(x, w, one_back), conv_transpose2d(images, filters, row_back));
    same(conv_transpose1d(x, w, b, one_back), conv_transpose2d(images, filters, b, row_back));
  }
}

TEST_CASE("a transposed convolution of nothing is the bias, or nothing") {
  const Tensor b = Tensor::from({2., 3.});
  const Tensor none = conv_transpose2d(Tensor::zeros({1, 0, 2, 2}, DType::f64),
                                       Tensor::zeros({0, 2, 1, 1}, DType::f64), b);
  CHECK(none.to_vector<double>() == Doubles{2, 2, 2, 2, 3, 3, 3, 3});
  CHECK(conv_transpose2d(Tensor::zeros({0, 3, 2, 2}), Tensor::zeros({3, 4, 3, 3})).shape() ==
        Shape{0, 4, 4, 4});
  CHECK(conv_transpose1d(Tensor::zeros({2, 3, 4}), Tensor::zeros({3, 0, 2})).shape() ==
        Shape{2, 0, 5});
  const Tensor of_groups =
      conv2d(Tensor::zeros({2, 0, 5, 5}), Tensor::zeros({4, 0, 3, 3}), {.groups = 2});
  CHECK(of_groups.to_vector<float>() == std::vector<float>(2 * 4 * 9));
}

TEST_CASE("a transposed convolution of open sizes is recorded once for all of them") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f64, {kOpen, 2, kOpen, kOpen}),
               w = graph.placeholder("w", DType::f64, {2, 3, kOpen, 2});
  const ConvTranspose2dOptions options{.stride = 2, .padding = {1, 0}, .output_padding = {0, 1}};
  const auto all = [&](const Tensor& x, const Tensor& w) {
    const Tensor y = conv_transpose2d(x, w, options);
    const Tensors slopes = gradients(sum(square(y)), {x, w});
    return Tensors{y, slopes[0], slopes[1]};
  };
  const Tensors recorded = all(x, w);
  CHECK(recorded[0].shape() == Shape{kOpen, 3, kOpen, kOpen});
  Session session(graph);
  for (const Shape& size : {Shape{2, 2, 3, 4}, Shape{1, 2, 5, 1}}) {
    const Tensor image = filled(size, 7).with_grad(), kernel = filled({2, 3, 4, 2}, 5).with_grad();
    const Tensors eager = all(image, kernel);
    const Tensors got = session.run(recorded, {{x, image}, {w, kernel}});
    for (std::size_t i = 0; i < 3; ++i) CHECK(bytes_of(got[i]) == bytes_of(eager[i]));
  }
}

TEST_CASE("transposed convolutions refuse what has no result, in words and with the line") {
  const Tensor x = Tensor::zeros({2, 4, 3, 5}), w = Tensor::zeros({4, 3, 2, 2});
  const auto refuses = [&](const ConvTranspose2dOptions& options, const std::string& why) {
    EBB_REFUSES(conv_transpose2d(x, w, options), ShapeError, "[conv_transpose2d] " + why);
  };
  refuses({.stride = 0}, "takes a stride of 1 or more");
  refuses({.padding = {-1, 0}}, "takes a padding of 0 or more");
  refuses({.dilation = 0}, "takes a dilation of 1 or more");
  refuses({.groups = 3}, "the channels of x do not make 3 groups");
  refuses({.padding = {2, 0}}, "the padding leaves nothing of the result");
  const std::string output_padding =
      "takes an output padding of 0 or more, below the stride or the dilation";
  refuses({.output_padding = 1}, output_padding);
  refuses({.stride = 2, .output_padding = {0, 2}, .dilation = 2}, output_padding);
  refuses({.stride = 2, .output_padding = {-1, 0}}, output_padding);
  refuses({.stride = std::int64_t{1} << 30}, "the result is too large");
  EBB_REFUSES(conv_transpose2d(x, Tensor::zeros({3, 4, 2, 2})), ShapeError,
              "[conv_transpose2d] axis 0 of the weights must be the channels of x; inputs are "
              "f32[2, 4, 3, 5], f32[3, 4, 2, 2] (");
  EBB_REFUSES(conv_transpose2d(x, w, Tensor::zeros({4})), ShapeError,
              "[conv_transpose2d] the bias must be [out]");
  EBB_REFUSES(conv_transpose2d(x, Tensor::zeros({4, 3, 0, 2})), ShapeError,
              "[conv_transpose2d] takes a kernel of at least one element");
  EBB_REFUSES(conv_transpose2d(Tensor::zeros({2, 4, 0, 5}), w), ShapeError,
              "[conv_transpose2d] takes images of at least one pixel");
  EBB_REFUSES(
      conv_transpose2d(Tensor::zeros({2, 4, 0, 5}), w, {.output_padding = 1, .dilation = 2}),
      ShapeError, "[conv_transpose2d] takes images of at least one pixel");
  EBB_REFUSES(conv_transpose2d(x, Tensor::zeros({4, 3, 2})), ShapeError,
              "[conv_transpose2d] takes x [n, in, h, w] and weights [in, out / groups, kh, kw]");
  EBB_REFUSES(conv_transpose1d(x, w), ShapeError, "[conv_transpose1d] takes x [n, in, length]");
}

TEST_CASE("of transposed convolutions in a graph what is known is asked, and what is open not") {
  Graph graph;
  const Tensor open = graph.placeholder("open", DType::f32, {1, kOpen, 3, 3}),
               bias = graph.placeholder("bias", DType::f32, {kOpen}),
               tall = graph.placeholder("tall", DType::f32, {1 << 20, 1, 1, 1}),
               wide = graph.placeholder("wide", DType::f32, {1, 1, 1, (std::int64_t{1} << 32) + 3}),
               one = Tensor::zeros({1, 1, 1, 1});
  const Tensor w = Tensor::zeros({3, 2, 2, 2});
  CHECK(conv_transpose2d(open, w, bias).shape() == Shape{1, 2, 4, 4});
  EBB_REFUSES(conv_transpose2d(open, w, {.groups = 2}), ShapeError,
              "[conv_transpose2d] the channels of x do not make 2 groups");
  // Results that are too large. The last is too large once x is padded: an output padding of the
  // stride or more becomes padding of x.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  EBB_REFUSES(conv_transpose2d(wide, one, {.stride = {1, kMost}, .output_padding = {0, kMost - 1}}),
              ShapeError, "[conv_transpose2d] the result is too large");
  EBB_REFUSES(
      conv_transpose2d(Tensor::zeros({1, 0, 1, 1}), Tensor::zeros({0, std::int64_t{1} << 40, 1, 1}),
                       {.groups = 1 << 30}),
      ShapeError, "[conv_transpose2d] the result is too large");
  EBB_REFUSES(
      conv_transpose2d(tall, one, {.output_padding = {0, 1 << 29}, .dilation = {1, 1 << 30}}),
      ShapeError, "[conv_transpose2d] ");
}

TEST_CASE("what no kernel reaches is refused") {
  const Tensor x = Tensor::zeros({2, 3, 4, 5});
  EBB_REFUSES(conv2d(x, Tensor::zeros({1, 3, 0, 2})), ShapeError,
              "[conv2d] takes a kernel of at least one element");
  EBB_REFUSES(conv2d(x, Tensor::zeros({1, 3, 5, 1})), ShapeError,
              "[conv2d] the kernel is higher than the images, padding and all");
  CHECK(conv2d(x, Tensor::zeros({1, 3, 4, 5})).shape() == Shape{2, 1, 1, 1});
  EBB_REFUSES(max_pool2d(Tensor::zeros({1, 0, 4}), {.kernel = 2, .padding = 1}), ShapeError,
              "[max_pool2d] the kernel is higher than the images");
  EBB_REFUSES(avg_pool1d(Tensor::zeros({1, 0}), {.kernel = 2, .padding = 1}), ShapeError,
              "[avg_pool1d] the kernel is longer than x, padding and all");
}

TEST_CASE("pools of one axis are those of images of height 1, a kernel apart unless told") {
  const Tensor x = Tensor::from({{1.f, 5.f, 2.f, 4.f, 3.f, 0.f, 6.f}});
  const auto values = [](const Tensor& y) { return y.to_vector<float>(); };
  using Floats = std::vector<float>;
  CHECK(values(max_pool1d(x, {.kernel = 3})) == Floats{5, 4});
  CHECK(values(max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1})) == Floats{5, 5, 4, 6});
  CHECK(values(avg_pool1d(x, {.kernel = 2})) == Floats{3, 3, 1.5});
  CHECK(values(avg_pool1d(x, {.kernel = 2, .stride = 3, .padding = 1})) == Floats{0.5, 3, 3});
  CHECK(
      values(avg_pool1d(x, {.kernel = 2, .stride = 3, .padding = 1, .count_include_pad = false})) ==
      Floats{1, 3, 3});
}

}  // namespace ebb::tests
