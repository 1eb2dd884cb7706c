// Messages of operators that are given wrong inputs.
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

// "accepted", or the message of the node's shape rule for other inputs.
std::string answer(const Node& node, const Specs& inputs) {
  Specs outputs;
  Inference inference{
      *node.op, {inputs.data(), inputs.size()}, node.attributes, {"model.cpp", 42}, outputs};
  try {
    node.op->infer(inference);
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "accepted";
}

Specs inputs_of(const Node& node) {
  Specs specs;
  for (const Node::Source& source : node.inputs)
    specs.push_back(source.producer->outputs[source.output]);
  return specs;
}

// "" where a message names the operator, all inputs and the line; else the first that is missing.
std::string missing_in(const std::string& message, const Node& node, const Specs& inputs) {
  if (message.find("[" + std::string(node.op->name) + "] ") != 0) return "the operator";
  for (const Spec& input : inputs)
    if (message.find(input.to_string()) == std::string::npos) return input.to_string();
  if (message.find("(model.cpp:42)") == std::string::npos) return "the line";
  return "";
}

Tensor f32(const Shape& shape) { return Tensor::zeros(shape); }

}  // namespace

TEST_CASE(
    "Every operator refuses a dtype that it does not take, and an axis too many, and says of what",
    "[host]") {
  for (const Sample& sample : all_samples(DType::f32)) {
    const RecordedSample recorded(sample, DType::f32, false);
    const Node& node = recorded.node();
    const auto refuses = [&](const Specs& inputs) {
      CHECK(missing_in(answer(node, inputs), node, inputs) == "");
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      INFO(sample.name << ", input " << i);
      const Specs inputs = inputs_of(node);
      Specs another = inputs, larger = inputs;
      another[i].dtype = DType::u8;
      if (!sample.any_dtype && !node.op->shape_only.has(i)) refuses(another);
      larger[i].shape = {7};
      for (const std::int64_t size : inputs[i].shape.dims()) larger[i].shape.push_back(size);
      if (!sample.any_shape) refuses(larger);
    }
  }
}

TEST_CASE("An error names the operator, the shapes and the user's own line, of an expression too") {
  CHECK_ERROR_HERE(
      matmul(f32({2, 3}), f32({4, 5})), ShapeError,
      "[matmul] axis 1 of the first matrix and axis 0 of the second must have one size; "
      "inputs are f32[2, 3], f32[4, 5] (");
  CHECK_ERROR_HERE(f32({2, 3}) + f32({2}), ShapeError,
                   "[add] shapes do not broadcast; inputs are f32[2, 3], f32[2] (");
}

TEST_CASE("Each family refuses what makes no sense, in words") {
  const Tensor x = f32({2, 3});
  const Tensor whole = cast(x, DType::i64);
  EBB_REFUSES(x * whole, ShapeError, "[multiply] takes inputs of one dtype (cast() converts)");
  EBB_REFUSES(x * cast(x, DType::f64), ShapeError, "[multiply] takes inputs of one dtype");
  EBB_REFUSES(exp(whole), ShapeError,
              "[exp] takes f32, f64, f16 or bf16 (cast() converts); the input is i64");
  EBB_REFUSES(Operand(1) + Operand(2), Error, "[add] takes at least one tensor");
  EBB_REFUSES(square(Operand(2)), Error, "[square] takes a tensor here, not a number");
  EBB_REFUSES(square(Tensor()), Error, "[square] an input is a tensor that holds nothing");
  EBB_REFUSES(x + Tensor(), Error, "holds nothing");
  EBB_REFUSES(matmul(x, f32({})), ShapeError, "[matmul] takes matrices or vectors, not a scalar");
  EBB_REFUSES(matmul(x, f32({2})), ShapeError,
              "[matmul] axis 1 of the first matrix and axis 0 of the second must have one size; "
              "inputs are f32[2, 3], f32[2] (");
  EBB_REFUSES(matmul(f32({3}), x, {.transpose_a = true, .transpose_b = true}), ShapeError,
              "[matmul] transposes matrices, not a vector");
  EBB_REFUSES(matmul(f32({2, 4, 3}), f32({5, 3, 2})), ShapeError,
              "[matmul] shapes do not broadcast; inputs are f32[2, 4, 3], f32[5, 3, 2] (");
  const Tensor images = f32({2, 4, 5, 6});
  EBB_REFUSES(conv2d(images, f32({3, 2, 3, 3})), ShapeError,
              "[conv2d] axis 1 of the weights must be the channels of x; inputs are "
              "f32[2, 4, 5, 6], f32[3, 2, 3, 3] (");
  EBB_REFUSES(conv2d(images, f32({3, 2, 3, 3}), {.groups = 2}), ShapeError,
              "[conv2d] the filters do not make 2 groups");
  EBB_REFUSES(conv2d(images, f32({3, 4, 3, 4}), {.dilation = 2}), ShapeError,
              "[conv2d] the kernel is wider than the images, padding and all");
  EBB_REFUSES(conv2d(images, f32({3, 4, 3, 3}), {.stride = {1, 0}}), ShapeError,
              "[conv2d] takes a stride of 1 or more");
  EBB_REFUSES(conv2d(images, f32({3, 4, 3, 3}), {.padding = -1}), ShapeError,
              "[conv2d] takes a padding of 0 or more");
  EBB_REFUSES(conv2d(images, f32({3, 4, 3, 3}), f32({4})), ShapeError,
              "[conv2d] the bias must be [out]");
  EBB_REFUSES(conv1d(images, f32({3, 4, 3})), ShapeError,
              "[conv1d] takes x [n, in, length] and weights [out, in / groups, k]; inputs are "
              "f32[2, 4, 5, 6], f32[3, 4, 3] (");
  EBB_REFUSES(max_pool2d(images, {.kernel = 3, .padding = 2}), ShapeError,
              "[max_pool2d] takes a padding of at most half the kernel; the input is "
              "f32[2, 4, 5, 6] (");
  EBB_REFUSES(avg_pool2d(images, {.kernel = {6, 1}}), ShapeError,
              "[avg_pool2d] the kernel is higher than the images, padding and all");
  const Tensor q = f32({2, 3, 4}), k = f32({2, 5, 4}), v = f32({2, 5, 6});
  const auto attend = [&](const Tensor& keys, const Tensor& mask) {
    return scaled_dot_product_attention(q, keys, v, {.mask = mask});
  };
  EBB_REFUSES(attend(f32({2, 5, 3}), {}), ShapeError,
              "[scaled_dot_product_attention] q and k must have one depth; inputs are "
              "f32[2, 3, 4], f32[2, 5, 3], f32[2, 5, 6] (");
  EBB_REFUSES(attend(f32({1, 5, 4}), {}), ShapeError, "q, k and v must have equal leading axes");
  EBB_REFUSES(attend(k, f32({4, 5})), ShapeError, "the mask must broadcast to [..., length, keys]");
  EBB_REFUSES(attend(k, cast(f32({3, 5}), DType::i64)), ShapeError,
              "the mask must be bool, or of the dtype of q");
  EBB_REFUSES(dense(x, f32({4, 5})), ShapeError, "[dense] the last axis of x must have the size");
  EBB_REFUSES(dense(x, f32({3, 5}), f32({4})), ShapeError, "[dense] the bias must be [out]");
  EBB_REFUSES(sum(x, {.axes = {2}}), ShapeError,
              "[sum] there is no axis 2; the input is f32[2, 3]");
  EBB_REFUSES(mean(x, {.axes = {1, -1}}), ShapeError, "[mean] axis -1 is given twice");
  EBB_REFUSES(sum_like(x, f32({2})), ShapeError, "[sum_like] the second shape does not broadcast");
  EBB_REFUSES(reshape(x, {4, 2}), ShapeError, "[reshape] does not fit the shape [4, 2]");
  EBB_REFUSES(reshape(x, {-1, 4}), ShapeError, "[reshape] does not fit the shape");
  EBB_REFUSES(reshape(x, {-1, -1}), ShapeError, "[reshape] takes -1 for one dimension only");
  EBB_REFUSES(reshape(f32({0}), {-1, 0}), ShapeError, "[reshape] cannot tell the -1");
  EBB_REFUSES(flatten(f32({})), ShapeError, "[flatten] takes a tensor of at least one axis");
  EBB_REFUSES(slice(x, 1, 3), ShapeError, "[slice] rows 1 to 3 are out of range");
  EBB_REFUSES(slice(x, -3), ShapeError, "[slice] rows -3 to the end are out of range");
  EBB_REFUSES(select(x, 0, 2), ShapeError, "[select] there is no index 2 along axis 0");
  EBB_REFUSES(select(x, 2, 0), ShapeError, "[select] there is no axis 2");
  EBB_REFUSES(last_step(x), ShapeError, "[last_step] takes x [batch, time, feature]");
  EBB_REFUSES(rows(f32({})), ShapeError, "[rows] there is no axis 0; the input is f32[]");
  EBB_REFUSES(size(f32({2, 3}), 2), ShapeError, "there is no axis 2");
  EBB_REFUSES(size(f32({2, 3}), -3), ShapeError, "there is no axis -3");
  EBB_REFUSES(softmax_cross_entropy(x, Tensor::from({1, 2, 0})), ShapeError,
              "[softmax_cross_entropy] takes scores [.., classes] and labels [..]");
  EBB_REFUSES(mse(x, f32({2, 1})), ShapeError,
              "[mse] takes two inputs of one shape; inputs are f32[2, 3], f32[2, 1]");
  EBB_REFUSES(dropout(x, 1, Phase::training), Error, "[dropout] takes a probability in [0, 1)");
  EBB_REFUSES(bernoulli({2}, {.probability = 2}), Error, "takes a probability in [0, 1]");
  EBB_REFUSES(uniform({2}, {.low = 1, .high = 0}), Error,
              "[uniform] takes finite bounds, the lower one first, not 1.000000 and 0.000000");
  EBB_REFUSES(uniform({2}, {.high = std::numeric_limits<double>::quiet_NaN()}), Error, "finite");
  EBB_REFUSES(uniform_like(x, 0, std::numeric_limits<double>::infinity()), Error,
              "[uniform_like] takes finite bounds");
  EBB_REFUSES(normal({2}, {.standard_deviation = -1}), Error,
              "[normal] takes a finite mean and a finite standard deviation of 0 or more, not "
              "0.000000 and -1.000000");
  EBB_REFUSES(normal_like(x, std::numeric_limits<double>::infinity()), Error, "[normal_like]");
  CHECK(uniform({2}, {.low = 3, .high = 3}).to_vector<float>() == std::vector<float>{3, 3});
  CHECK(normal({2}, {.mean = 3, .standard_deviation = 0}).to_vector<float>() ==
        std::vector<float>{3, 3});
  EBB_REFUSES(uniform({2}, {.dtype = DType::i32}), ShapeError,
              "[uniform] makes f32, f64, f16 or bf16, not i32 (");
  EBB_REFUSES(normal({-1}), ShapeError, "[normal] takes no open shape [?]");
  EBB_REFUSES(assign(x, f32({3, 2})), ShapeError, "[assign] takes tensors of one shape and dtype");
  for (const double begin : {-3., 2., 1e300, 0.5, std::numeric_limits<double>::quiet_NaN()})
    EBB_REFUSES(assign_slice(x, begin, f32({1, 3})), ShapeError, "[assign_slice] ");
  EBB_REFUSES(assign_slice(x, 2, f32({2, 2}), {.axis = 1}), ShapeError,
              "[assign_slice] the value does not fit into axis 1 at 2; inputs are f32[2, 3], f32[");
  EBB_REFUSES(assign_slice(x, f32({}), x), ShapeError, "`begin` must be an i64 scalar");
  EBB_REFUSES(assign_slice(x, 0, f32({3})), ShapeError, "a value with all axes of x: unsqueeze(");
  EBB_REFUSES(assign_slice(x, 0, cast(x, DType::f64)), ShapeError, "takes a value of x's dtype");
  EBB_REFUSES(assign_slice(x, 0, 1), Error, "[assign_slice] ");
  EBB_REFUSES(assign_slice(x, 0, slice(x, 1, 2)), Error, "[assign_slice] ");
  EBB_REFUSES(sum(x, {.axes = {0}, .axis = 0}), Error, "[sum] ");
  EBB_REFUSES(softmax(x, 9), ShapeError, "[softmax] there is no axis 9");
  EBB_REFUSES(argsort(x, {.axis = 9}), ShapeError, "[argsort] there is no axis 9");
  EBB_REFUSES(topk(x, 1, {.axis = 9}), ShapeError, "[topk] there is no axis 9");
  const Tensor signals = f32({2, 4, 5});
  EBB_REFUSES(conv1d(signals, f32({3, 4, 2}), {.stride = 0}), ShapeError,
              "[conv1d] takes a stride");
  EBB_REFUSES(conv1d(signals, f32({4, 2, 2}), {.groups = 3}), ShapeError, "[conv1d] ");
  EBB_REFUSES(conv_transpose1d(signals, f32({4, 3, 2}), {.output_padding = 1}), ShapeError,
              "[conv_transpose1d] takes an output padding");
  EBB_REFUSES(conv_transpose1d(signals, f32({4, 3, 2}), {.groups = 3}), ShapeError,
              "[conv_transpose1d] the channels of x do not make 3 groups");
  EBB_REFUSES(avg_pool1d(signals, {.kernel = 0}), ShapeError, "[avg_pool1d] ");
  EBB_REFUSES(avg_pool2d(images, {.kernel = 0}), ShapeError, "[avg_pool2d] ");
  EBB_REFUSES(bernoulli_like(x, 2), Error, "[bernoulli_like] takes a probability in [0, 1]");
  EBB_REFUSES(add_assign(whole, 1), ShapeError, "[add_assign] takes f32, f64, f16 or bf16");
}

TEST_CASE("Operators that move elements refuse axes and shapes that are not there, in words") {
  const Tensor x = f32({2, 3});
  EBB_REFUSES(permute(x, {0}), ShapeError,
              "[permute] is given an order of 1 axes; the input is f32[2, 3]");
  EBB_REFUSES(permute(x, {0, 2}), ShapeError, "[permute] there is no axis 2");
  EBB_REFUSES(permute(x, {1, -1}), ShapeError, "[permute] axis -1 is given twice");
  EBB_REFUSES(transpose(x, 0, 2), ShapeError, "[transpose] there is no axis 2");
  EBB_REFUSES(transpose(f32({3})), ShapeError, "[transpose] there is no axis -2");
  EBB_REFUSES(permute(2, {}), Error, "[permute] takes a tensor here, not a number");
  EBB_REFUSES(concat(Tensors()), Error, "[concat] takes at least one tensor");
  EBB_REFUSES(concat({x, Tensor()}), Error, "[concat] an input is a tensor that holds nothing");
  EBB_REFUSES(concat({x, x}, 2), ShapeError, "[concat] there is no axis 2");
  EBB_REFUSES(concat({f32({}), f32({})}), ShapeError, "[concat] there is no axis 0");
  EBB_REFUSES(concat({x, x, f32({2, 4})}), ShapeError,
              "[concat] takes tensors of one dtype, and of one shape but for axis 0; input 2 "
              "differs; inputs are f32[2, 3], f32[2, 3], f32[2, 4]");
  EBB_REFUSES(concat({x, cast(x, DType::f64)}, 1), ShapeError, "input 1 differs");
  EBB_REFUSES(concat({x, f32({2})}, 1), ShapeError, "input 1 differs");
  EBB_REFUSES(stack(Tensors()), Error, "[stack] takes at least one tensor");
  EBB_REFUSES(stack({x, Tensor()}), Error, "[stack] an input is a tensor that holds nothing");
  EBB_REFUSES(stack({x, f32({3, 2})}), ShapeError,
              "[stack] takes tensors of one shape and dtype; input 1 is f32[3, 2], the first "
              "f32[2, 3]");
  EBB_REFUSES(stack({x}, 3), ShapeError, "[stack] cannot put an axis at 3");
  EBB_REFUSES(unsqueeze(x, -4), ShapeError,
              "[unsqueeze] cannot put an axis at -4; the input is f32[2, 3]");
  EBB_REFUSES(unsqueeze(f32({1, 1, 1, 1, 1, 1}), 0), ShapeError,
              "[unsqueeze] leaves no room for one more axis");
  EBB_REFUSES(slice(x, 1, 4, {.axis = 1}), ShapeError,
              "[slice] 1 to 4 of axis 1 are out of range; the input is f32[2, 3]");
  EBB_REFUSES(slice(x, 2, 1, {.axis = 1}), ShapeError, "[slice] 2 to 1 of axis 1 are out of range");
  EBB_REFUSES(slice(x, 0, 1, {.axis = 1, .step = -1}), ShapeError,
              "[slice] 0 to 1 of axis 1 in steps of -1 are out of range");
  EBB_REFUSES(slice(x, 3, 0, {.axis = 1, .step = -1}), ShapeError, "are out of range");
  EBB_REFUSES(slice(x, 2, -5, {.axis = 1, .step = -1}), ShapeError, "are out of range");
  EBB_REFUSES(slice(x, 0, 3, {.step = 2}), ShapeError,
              "[slice] rows 0 to 3 in steps of 2 are out of range");
  EBB_REFUSES(slice(x, 0, kEnd, {.axis = 2}), ShapeError, "[slice] there is no axis 2");
  EBB_REFUSES(slice(x, 0, kEnd, {.step = 0}), ShapeError, "[slice] takes no step of 0");
  EBB_REFUSES(slice(f32({}), 0), ShapeError, "[slice] there is no axis 0; the input is f32[]");
  EBB_REFUSES(split(x, {1, 1}, 1), ShapeError,
              "[split] cannot cut axis 1 into {1, 1}; the input is f32[2, 3]");
  EBB_REFUSES(split(x, {4, -1}, 1), ShapeError, "cannot cut axis 1 into {4, -1}");
  EBB_REFUSES(split(x, {-1, -1}, 1), ShapeError, "into {-1, -1}: -1 is for one size only");
  EBB_REFUSES(split(x, {5, -2}, 1), ShapeError, "into {5, -2}");
  EBB_REFUSES(chunk(x, 2, 1), ShapeError,
              "[chunk] cannot cut axis 1 into 2 parts of one size; the input is f32[2, 3]");
  EBB_REFUSES(chunk(x, 0), ShapeError, "into 0 parts");
  EBB_REFUSES(flip(x, {2}), ShapeError, "[flip] there is no axis 2");
  EBB_REFUSES(pad(x, {{1, 1}}), ShapeError,
              "[pad] takes a padding for each axis, not 1; the input is f32[2, 3]");
  EBB_REFUSES(pad(x, {{1, 1}, {0, -1}}), ShapeError, "[pad] takes no padding of {0, -1}");
  EBB_REFUSES(pad(x, {{std::int64_t{1} << 32, 0}, {}}), ShapeError,
              "[pad] takes no padding of {4294967296, 0}");
  EBB_REFUSES(pad(f32({1 << 20, 0, 1 << 20}), {{}, {1 << 20, 0}, {}}), ShapeError,
              "[pad] the result is too large");
  EBB_REFUSES(broadcast_to(x, {3, 3}), ShapeError,
              "[broadcast_to] does not broadcast to the shape [3, 3]; the input is f32[2, 3]");
  EBB_REFUSES(broadcast_to(x, {3}), ShapeError, "does not broadcast to the shape [3]");
  EBB_REFUSES(broadcast_to(x, {-1, 2, 3}), ShapeError, "to the shape [?, 2, 3]");
  EBB_REFUSES(tile(x, -1), ShapeError, "[tile] takes no tensor -1 times");
  EBB_REFUSES(tile(x, 2, 2), ShapeError, "[tile] there is no axis 2");
  EBB_REFUSES(repeat(f32({1, 1, 1, 1, 1, 1}), 2), ShapeError,
              "[repeat] leaves no room for one more axis");
  EBB_REFUSES(broadcast_to(x, {-2, 3}), ShapeError, "[broadcast_to] ");
  EBB_REFUSES(reshape(x, {-2, 3}), ShapeError, "[reshape] ");
  EBB_REFUSES(reshape(x, {1, 1, 1, 1, 1, 2, 3}), ShapeError, "[reshape] ");
  EBB_REFUSES(unflatten(x, 9, {3}), ShapeError, "[unflatten] there is no axis 9");
  EBB_REFUSES(unflatten(x, 1, {1, 1, 1, 1, 1, 3}), ShapeError, "[unflatten] ");
  EBB_REFUSES(tile(x, std::int64_t{1} << 60), ShapeError, "[tile] ");
  EBB_REFUSES(repeat(x, -1), ShapeError, "[repeat] ");
  EBB_REFUSES(repeat(x, 2, 9), ShapeError, "[repeat] there is no axis 9");
  EBB_REFUSES(split(x, {1, 1}, 9), ShapeError, "[split] there is no axis 9");
  EBB_REFUSES(chunk(x, 2, 9), ShapeError, "[chunk] there is no axis 9");
  EBB_REFUSES(squeeze(x, 9), ShapeError, "[squeeze] there is no axis 9");
  EBB_REFUSES(squeeze(x, {0}), ShapeError, "[squeeze] axis 0 is not of size 1");
  EBB_REFUSES(squeeze(f32({1, 3}), {0, -2}), ShapeError, "[squeeze] axis -2 is given twice");
}

TEST_CASE("0 is a size of a shape that is asked for, which something with elements does not fit") {
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {-1, -1, 8});
  const Tensor none = graph.placeholder("none", DType::f32, {-1, 0});
  for (const Tensor& x : {open, f32({2, 3, 8})}) {
    EBB_REFUSES(reshape(x, {0, 0, 2, 4}), ShapeError,
                "[reshape] does not fit the shape [0, 0, 2, 4], in which 0 is a size, as in NumPy: "
                "-1 is what is left, and unflatten(x, axis, sizes)");
    EBB_REFUSES(reshape(x, {0, -1}), ShapeError, "0 is a size");
    EBB_REFUSES(reshape(x, {-1, -1, 2, 4}), ShapeError,
                x.shape().is_open() ? "for one dimension only, and unflatten(x, axis, sizes)"
                                    : "for one dimension only;");
    EBB_REFUSES(unflatten(x, 2, {0, -1}), ShapeError, "[unflatten] does not fit the shape [0, ?]");
    CHECK(unflatten(x, -1, {2, 4}).shape().rank() == 4);
  }
  CHECK(reshape(none, {0, 0, 2, 4}).shape() == Shape{0, 0, 2, 4});
  CHECK(flatten(unsqueeze(none, -1)).shape().to_string() == "[?, 0]");
  EBB_REFUSES(reshape(none, {2}), ShapeError, "[reshape] does not fit the shape [2]");
  CHECK(reshape(f32({0, 3}), {0, 7}).shape() == Shape{0, 7});
  const Tensor cut = unflatten(unflatten(open, 0, {2, -1}), 2, {1, 3});
  CHECK(cut.shape().to_string() == "[2, ?, 1, 3, 8]");
  CHECK(concat({open, f32({1, 3, 8})}, 0).shape().to_string() == "[?, 3, 8]");
  Session session(graph);
  CHECK(session.run(cut, {{open, f32({4, 3, 8})}}).shape() == Shape{2, 2, 1, 3, 8});
  EBB_REFUSES(session.run(cut, {{open, f32({4, 2, 8})}}), ShapeError,
              "[unflatten] does not fit the shape [1, 3]; the input is f32[2, 2, 2, 8]");
}

TEST_CASE("What was open when tensors were joined is compared when it is fed") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor y = graph.placeholder("y", DType::f32, {-1, 3});
  const Tensor z = concat({x, y}, 1), w = squeeze(unsqueeze(x, 0), {1});
  EBB_REFUSES(split(x, {1, 2}), ShapeError,
              "[split] cannot cut axis 0 into {1, 2}: of an open axis one size is -1");
  EBB_REFUSES(chunk(x, 2), ShapeError, "[chunk] cannot cut axis 0 into 2 parts of one size");
  Session session(graph);
  EBB_REFUSES(session.run(z, {{x, f32({4, 3})}, {y, f32({2, 3})}}), ShapeError,
              "[concat] takes tensors of one dtype, and of one shape but for axis 1; input 1 "
              "differs; inputs are f32[4, 3], f32[2, 3]");
  EBB_REFUSES(session.run(w, {{x, f32({2, 3})}}), ShapeError,
              "[squeeze] axis 1 is not of size 1; the input is f32[1, 2, 3]");
  CHECK(session.run(w, {{x, f32({1, 3})}}).shape() == Shape{1, 3});
}

TEST_CASE("Functions that apply other operators are named in what they refuse") {
  const Tensor x = Tensor::zeros({2, 3}), none;
  const Tensor indices = Tensor::from({{0, 1, 0}}), row = Tensor::from({0, 1});
  EBB_REFUSES(scatter_add(x, 0, indices, x), ShapeError,
              "[scatter_add] updates must have the shape of the indices; inputs are f32[2, 3], "
              "i32[1, 3], f32[2, 3]");
  EBB_REFUSES(scatter_add(x, 2, indices, x), ShapeError, "[scatter_add] there is no axis 2");
  EBB_REFUSES(scatter_add(x, 0, x, x), ShapeError, "[scatter_add] indices must be i32 or i64");
  EBB_REFUSES(scatter_add(x, 0, row, x), ShapeError, "[scatter_add] indices must have the shape");
  EBB_REFUSES(scatter_add(x, 0, indices, none), Error, "[scatter_add] an input is a tensor that");
  EBB_REFUSES(scatter_add(x, 0, indices, cast(Tensor::zeros({1, 3}), DType::f64)), ShapeError,
              "[scatter_add] takes inputs of one dtype");
  EBB_REFUSES(index_add(x, row, Tensor::zeros({3, 3})), ShapeError,
              "[index_add] the values have not the shape of the parts; inputs are f32[2, 3], "
              "i32[2], f32[3, 3]");
  EBB_REFUSES(index_add(x, row, x, 2), ShapeError, "[index_add] there is no axis 2");
  EBB_REFUSES(index_add(cast(x, DType::i32), row, x), ShapeError, "[index_add] takes f32, f64");
  EBB_REFUSES(index_add(x, x, x), ShapeError, "[index_add] indices must be i32 or i64");
  EBB_REFUSES(ones_like(none), Error, "[ones_like] an input is a tensor that holds nothing");
  EBB_REFUSES(zeros_like(2), Error, "[zeros_like] takes a tensor here, not a number");
  EBB_REFUSES(full_like(none, 2), Error, "[full_like] an input is a tensor that holds nothing");
  EBB_REFUSES(permutation(-1), ShapeError, "[permutation] takes a count from 0 on, not -1");
}

TEST_CASE("A stack of layers says which one does not fit, and what sequences it does not take") {
  const Tensor x = f32({2, 5, 3});
  const auto check = [&](const std::string& name, const auto& run, const auto& layer) {
    const std::vector one = {layer}, two = {layer, layer}, none(two.begin(), two.begin());
    EBB_REFUSES(run(x, two), ShapeError, name + " the weights of layer 1 must be");
    EBB_REFUSES(run(f32({2, 3}), one), ShapeError, name + " takes x [batch, time, in]");
    EBB_REFUSES(run(x, none), Error, name + " takes at least one layer");
    for (const DType dtype : {DType::f64, DType::f16})
      EBB_REFUSES(run(cast(x, dtype), one), ShapeError, name + " takes inputs of one dtype");
    EBB_REFUSES(run(cast(x, DType::i32), one), ShapeError, name + " takes f32, f64");
  };
  const GruWeights of_gru[] = {{f32({3, 12}), f32({4, 12}), f32({16})}},
                   of_another[] = {{f32({3, 16}), f32({4, 16}), f32({16})}};
  const LstmWeights of_lstm[] = {{f32({3, 16}), f32({4, 16}), f32({16})}};
  const Tensor three = f32({1, 3, 4});
  check(
      "[gru]", [](const Tensor& x, const auto& layers) { return gru(x, layers); }, of_gru[0]);
  EBB_REFUSES(gru(x, of_gru, {.dropout = 1}), Error, "[gru] takes a dropout in [0, 1)");
  EBB_REFUSES(gru(x, of_gru, {.hidden = three}), ShapeError,
              "[gru] the state must be [layers, batch, hidden]");
  EBB_REFUSES(
      gru(x, of_another), ShapeError,
      "[gru] the weights of layer 0 must be [in, 3 hidden], [hidden, 3 hidden], [4 hidden]");
  check(
      "[lstm]", [](const Tensor& x, const auto& layers) { return lstm(x, layers); }, of_lstm[0]);
  EBB_REFUSES(lstm(x, of_lstm, {.dropout = 1}), Error, "[lstm] takes a dropout in [0, 1)");
  EBB_REFUSES(lstm(x, of_lstm, {.hidden = three}), Error, "[lstm] takes both states or neither");
  EBB_REFUSES(lstm(x, of_lstm, {.hidden = three, .cell = three}), ShapeError,
              "[lstm] the states must be [layers, batch, hidden]");
}

TEST_CASE("A stack of layers refuses each weight that does not fit") {
  const Tensor x = f32({2, 5, 3}), r = f32({4, 12}), b = f32({16});
  const auto of = [&](const Tensor& w, const Tensor& recurrent, const Tensor& bias) {
    const GruWeights weights{w, recurrent, bias};
    return gru(x, {&weights, 1});
  };
  const char* const wrong = "[gru] the weights of layer 0 must be [in, 3 hidden]";
  EBB_REFUSES(of(f32({2, 12}), r, b), ShapeError, wrong);
  EBB_REFUSES(of(f32({3, 12}), f32({4, 16}), b), ShapeError, wrong);
  EBB_REFUSES(of(f32({3, 12}), r, f32({12})), ShapeError, wrong);
  const char* const no_matrix = "[gru] the recurrent weight must be [hidden, 3 hidden]";
  EBB_REFUSES(of(f32({3, 12}), f32({12}), b), Error, no_matrix);
  EBB_REFUSES(of(f32({3, 12}), Tensor(), b), Error, no_matrix);
  Graph graph;
  EBB_REFUSES(of(f32({3, 12}), graph.placeholder("r", DType::f32, {-1, 12}), b), Error,
              "[gru] the size of the recurrent weight must be known, and below 2^29");
}

TEST_CASE("Shapes that were open when a node was made are checked when they are fed") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor y = graph.placeholder("y", DType::f32, {-1, 3});
  const std::string here = line(__LINE__ + 1);
  const Tensor z = x * y;
  Session session(graph);
  CHECK_ERROR(session.run(z, {{x, f32({4, 3})}, {y, f32({2, 3})}}), ShapeError,
              "[multiply] shapes do not broadcast; inputs are f32[4, 3], f32[2, 3] " + here);
}

}  // namespace ebb::tests
