// Whatever an operator refuses, it says in the name of the function that was called, with the
// user's line: in both modes, and where the function is made of others.
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/sequence.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/random.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

using Operands = std::span<const Operand>;
using Call = std::function<void(Operands x)>;

constexpr CallSite kUser{"user.cpp", 42};

// A public function, operands that it takes, and calls of it, with these operands, that it refuses.
struct Function {
  std::string name;
  std::vector<Spec> takes;
  Call call;
  std::vector<Call> refused = {};
  std::size_t optional = 99;  // from which operand on they may hold nothing
};

Spec f32(const Shape& shape) { return {DType::f32, shape}; }
Spec i64(const Shape& shape) { return {DType::i64, shape}; }
Spec boolean(const Shape& shape) { return {DType::boolean, shape}; }

const Spec kMatrix = f32({2, 3});

Tensors tensors_of(Operands x) {
  Tensors tensors;
  for (const Operand& operand : x)
    tensors.push_back(operand.is_number() ? Tensor() : operand.tensor());
  return tensors;
}

std::vector<Function> functions() {
  std::vector<Function> table;
  const auto put = [&](Function function) { table.push_back(std::move(function)); };
  const auto unary = [&](const char* name, Tensor (*function)(const Operand&)) {
    put({name, {kMatrix}, [function](Operands x) { function(x[0]); }});
  };
  const auto binary = [&](const char* name, Tensor (*function)(const Operand&, const Operand&)) {
    put({name, {kMatrix, kMatrix}, [function](Operands x) { function(x[0], x[1]); }});
  };

// Every pointwise operator of the lists that has no parameters.
#define EBB_UNARY(name, Functor) unary(#name, name);
#define EBB_BINARY(name, Functor) binary(#name, name);
#define EBB_PAIR(name, Functor) binary(#name, name);
#define EBB_MAP(name, Functor)
#define EBB_ZIP(name, Functor)
#include "ebb/core/kernels/functors/activations.inc"
#include "ebb/core/kernels/functors/arithmetic.inc"
#include "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/kernels/functors/extremes.inc"
#include "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/kernels/functors/rounding.inc"
#include "ebb/core/kernels/functors/trigonometry.inc"
#undef EBB_UNARY
#undef EBB_BINARY
#undef EBB_PAIR
#undef EBB_MAP
#undef EBB_ZIP

  put({"leaky_relu", {kMatrix}, [](Operands x) { leaky_relu(x[0]); }, {[](Operands x) {
         leaky_relu(x[0], -1);
       }}});
  put({"elu", {kMatrix}, [](Operands x) { elu(x[0]); }, {[](Operands x) { elu(x[0], -1); }}});
  put({"gelu", {kMatrix}, [](Operands x) { gelu(x[0]); }});
  put({"gelu", {kMatrix}, [](Operands x) { gelu(x[0], {.approximate = true}); }});
  put({"clamp", {kMatrix}, [](Operands x) { clamp(x[0], 0); }, {[](Operands x) {
         clamp(x[0], kNaN64);
       }}});

  binary("equal", equal);
  binary("not_equal", not_equal);
  binary("less", less);
  binary("less_equal", less_equal);
  binary("greater", greater);
  binary("greater_equal", greater_equal);
  const auto logic = [&](const char* name, Tensor (*function)(const Operand&, const Operand&)) {
    put({name, {boolean({2, 3}), boolean({2, 3})}, [function](Operands x) {
           function(x[0], x[1]);
         }});
  };
  logic("logical_and", logical_and);
  logic("logical_or", logical_or);
  logic("logical_xor", logical_xor);
  put({"logical_not", {boolean({2, 3})}, [](Operands x) { logical_not(x[0]); }});
  unary("isnan", isnan);
  unary("isinf", isinf);
  unary("isfinite", isfinite);
  put({"where",
       {boolean({2, 3}), kMatrix, kMatrix},
       [](Operands x) { where(x[0], x[1], x[2]); },
       {[](Operands x) {
         where(x[0], {1, kUser}, {2, kUser});
       }}});
  put({"masked_fill", {kMatrix, boolean({2, 3})}, [](Operands x) { masked_fill(x[0], x[1], 1); }});

  unary("copy", copy);
  put({"cast", {kMatrix}, [](Operands x) { cast(x[0], DType::i32); }});
  unary("zeros_like", zeros_like);
  unary("ones_like", ones_like);
  put({"full_like", {kMatrix}, [](Operands x) { full_like(x[0], 2); }});
  put({"fill_like", {kMatrix}, [](Operands x) { fill_like(x[0], 2); }});
  put({"tril", {kMatrix}, [](Operands x) { tril(x[0]); }});
  put({"triu", {kMatrix}, [](Operands x) { triu(x[0]); }});

  put({"permute",
       {kMatrix},
       [](Operands x) {
         permute(x[0], {1, 0});
       },
       {[](Operands x) { permute(x[0], {0}); },
        [](Operands x) {
          permute(x[0], {0, 9});
        },
        [](Operands x) {
          permute(x[0], {1, 1});
        }}});
  put({"transpose", {kMatrix}, [](Operands x) { transpose(x[0]); }, {[](Operands x) {
         transpose(x[0], 0, 9);
       }}});
  put({"concat",
       {kMatrix, kMatrix},
       [](Operands x) { concat(tensors_of(x), 0, kUser); },
       {[](Operands x) { concat(tensors_of(x), 9, kUser); },
        [](Operands) { concat(Tensors(), 0, kUser); }}});
  put({"stack",
       {kMatrix, kMatrix},
       [](Operands x) { stack(tensors_of(x), 0, kUser); },
       {[](Operands x) { stack(tensors_of(x), 9, kUser); },
        [](Operands) { stack(Tensors(), 0, kUser); }}});
  put({"broadcast_to",
       {kMatrix},
       [](Operands x) {
         broadcast_to(x[0], {4, 2, 3});
       },
       {[](Operands x) {
          broadcast_to(x[0], {4, 2});
        },
        [](Operands x) {
          broadcast_to(x[0], {-2, 3});
        },
        [](Operands x) { broadcast_to(x[0], Shape{2}); }}});
  put({"tile",
       {kMatrix},
       [](Operands x) { tile(x[0], 2); },
       {[](Operands x) { tile(x[0], -1); }, [](Operands x) { tile(x[0], 2, 9); },
        [](Operands x) { tile(x[0], std::int64_t{1} << 60); }}});
  put({"repeat",
       {kMatrix},
       [](Operands x) { repeat(x[0], 2); },
       {[](Operands x) { repeat(x[0], -1); }, [](Operands x) { repeat(x[0], 2, 9); }}});
  put({"pad",
       {kMatrix},
       [](Operands x) {
         pad(x[0], {{1, 1}, {0, 0}});
       },
       {[](Operands x) {
          pad(x[0], {{1, 1}});
        },
        [](Operands x) {
          pad(x[0], {{1, 1}, {0, -1}});
        }}});

  put({"reshape",
       {kMatrix},
       [](Operands x) {
         reshape(x[0], {3, 2});
       },
       {[](Operands x) {
          reshape(x[0], {-2, 3});
        },
        [](Operands x) {
          reshape(x[0], {4, 3});
        },
        [](Operands x) {
          reshape(x[0], {1, 1, 1, 1, 1, 2, 3});
        },
        [](Operands x) {
          reshape(x[0], Shape{-1, -1});
        }}});
  unary("flatten", flatten);
  put({"unflatten",
       {kMatrix},
       [](Operands x) {
         unflatten(x[0], 1, {3, 1});
       },
       {[](Operands x) { unflatten(x[0], 9, {3}); },
        [](Operands x) {
          unflatten(x[0], 1, {2, -1});
        },
        [](Operands x) {
          unflatten(x[0], 1, {1, 1, 1, 1, 1, 3});
        }}});
  put({"unsqueeze", {kMatrix}, [](Operands x) { unsqueeze(x[0], 0); }, {[](Operands x) {
         unsqueeze(x[0], 9);
       }}});
  put({"squeeze",
       {f32({1, 3})},
       [](Operands x) { squeeze(x[0], 0); },
       {[](Operands x) { squeeze(x[0], 9); }, [](Operands x) { squeeze(x[0], 1); }}});
  put({"slice",
       {kMatrix},
       [](Operands x) { slice(x[0], 1); },
       {[](Operands x) { slice(x[0], 9); }, [](Operands x) { slice(x[0], 0, 1, {.axis = 9}); },
        [](Operands x) { slice(x[0], 0, 9, {.axis = 1}); },
        [](Operands x) { slice(x[0], 0, 1, {.step = 0}); }}});
  put({"split",
       {kMatrix},
       [](Operands x) {
         split(x[0], {1, 1});
       },
       {[](Operands x) {
          split(x[0], {1, 2});
        },
        [](Operands x) {
          split(x[0], {1, 1}, 9);
        }}});
  put({"chunk",
       {kMatrix},
       [](Operands x) { chunk(x[0], 2); },
       {[](Operands x) { chunk(x[0], 3); }, [](Operands x) { chunk(x[0], 2, 9); }}});
  put({"roll", {kMatrix}, [](Operands x) { roll(x[0], 1, 0); }, {[](Operands x) {
         roll(x[0], 1, 9);
       }}});
  put({"flip", {kMatrix}, [](Operands x) { flip(x[0]); }, {[](Operands x) { flip(x[0], 9); }}});
  put({"select",
       {kMatrix},
       [](Operands x) { select(x[0], 0, 1); },
       {[](Operands x) { select(x[0], 0, 9); }, [](Operands x) { select(x[0], 9, 0); },
        [](Operands x) {
          x[0].tensor()[{9, kUser}];
        }}});
  put({"last_step", {f32({2, 3, 4})}, [](Operands x) { last_step(x[0]); }});
  put({"size", {kMatrix}, [](Operands x) { size(x[0], 0); }, {[](Operands x) { size(x[0], 9); }}});
  unary("rows", rows);

  put({"index_select",
       {kMatrix, i64({4})},
       [](Operands x) { index_select(x[0], x[1]); },
       {[](Operands x) { index_select(x[0], x[1], 9); }}});
  put({"embedding", {kMatrix, i64({4})}, [](Operands x) { embedding(x[0], x[1]); }});
  put({"index_add",
       {kMatrix, i64({4}), f32({4, 3})},
       [](Operands x) { index_add(x[0], x[1], x[2]); },
       {[](Operands x) { index_add(x[0], x[1], x[2], 9); }}});
  put({"gather",
       {kMatrix, i64({4, 3})},
       [](Operands x) { gather(x[0], 0, x[1]); },
       {[](Operands x) { gather(x[0], 9, x[1]); }}});
  put({"scatter_add",
       {kMatrix, i64({4, 3}), f32({4, 3})},
       [](Operands x) { scatter_add(x[0], 0, x[1], x[2]); },
       {[](Operands x) { scatter_add(x[0], 9, x[1], x[2]); }}});
  put({"pick", {kMatrix, i64({2})}, [](Operands x) { pick(x[0], x[1]); }, {[](Operands x) {
         pick(x[0], x[0]);
       }}});
  put({"one_hot",
       {i64({4})},
       [](Operands x) { one_hot(x[0], 3); },
       {[](Operands x) { one_hot(x[0], -1); }, [](Operands x) { one_hot(x[0], 3, DType::i32); }}});
  put({"reverse_sequence", {kMatrix, i64({2})}, [](Operands x) { reverse_sequence(x[0], x[1]); }});
  put({"reverse_sequence", {kMatrix, {DType::i32, {2}}}, [](Operands x) {
         reverse_sequence(x[0], x[1]);
       }});

  const auto reduction =
      [&](const char* name, Tensor (*function)(const Operand&, const ReduceOptions&), DType dtype) {
        put({name,
             {{dtype, {2, 3}}},
             [function](Operands x) { function(x[0], {}); },
             {[function](Operands x) { function(x[0], {.axes = {9}}); },
              [function](Operands x) {
                function(x[0], {.axes = {0, 0}});
              },
              [function](Operands x) { function(x[0], {.axes = {0}, .axis = 0}); }}});
      };
  reduction("sum", sum, DType::f32);
  reduction("mean", mean, DType::f32);
  reduction("any", any, DType::boolean);
  reduction("all", ebb::all, DType::boolean);
  reduction("max", max, DType::f32);
  reduction("min", min, DType::f32);
  reduction("logsumexp", logsumexp, DType::f32);
  reduction("prod", prod, DType::f32);
  put({"add",
       {kMatrix, kMatrix, kMatrix},
       [](Operands x) { add(tensors_of(x), kUser); },
       {[](Operands) { add(Tensors(), kUser); }}});
  put({"expand_as", {f32({3}), kMatrix}, [](Operands x) { expand_as(x[0], x[1]); }});
  put({"sum_like", {kMatrix, f32({3})}, [](Operands x) { sum_like(x[0], x[1]); }});
  put({"argmax", {kMatrix}, [](Operands x) { argmax(x[0]); }, {[](Operands x) {
         argmax(x[0], 9);
       }}});
  put({"argmin", {kMatrix}, [](Operands x) { argmin(x[0]); }, {[](Operands x) {
         argmin(x[0], 9);
       }}});
  put({"variance",
       {kMatrix},
       [](Operands x) { variance(x[0]); },
       {[](Operands x) { variance(x[0], 9); },
        [](Operands x) { variance(x[0], {.correction = 2}); }}});
  put({"standard_deviation",
       {kMatrix},
       [](Operands x) { standard_deviation(x[0]); },
       {[](Operands x) { standard_deviation(x[0], 9); }}});
  for (const double p : {1., 2., std::numeric_limits<double>::infinity()})
    put({"norm",
         {kMatrix},
         [p](Operands x) { norm(x[0], {.p = p}); },
         {[p](Operands x) { norm(x[0], {.p = p, .axes = {9}}); },
          [](Operands x) { norm(x[0], {.p = 3}); }}});
  put({"cumsum", {kMatrix}, [](Operands x) { cumsum(x[0], 0); }, {[](Operands x) {
         cumsum(x[0], 9);
       }}});
  put({"cumprod", {kMatrix}, [](Operands x) { cumprod(x[0], 0); }, {[](Operands x) {
         cumprod(x[0], 9);
       }}});
  for (const int axis : {0, 1}) {
    put({"sort", {kMatrix}, [axis](Operands x) { sort(x[0], {.axis = axis}); }, {[](Operands x) {
           sort(x[0], {.axis = 9});
         }}});
    put({"argsort",
         {kMatrix},
         [axis](Operands x) { argsort(x[0], {.axis = axis}); },
         {[](Operands x) { argsort(x[0], {.axis = 9}); }}});
    put({"topk",
         {kMatrix},
         [axis](Operands x) { topk(x[0], 1, {.axis = axis}); },
         {[axis](Operands x) { topk(x[0], 9, {.axis = axis}); }, [](Operands x) { topk(x[0], -1); },
          [](Operands x) { topk(x[0], 1, {.axis = 9}); }}});
  }
  put({"softmax", {kMatrix}, [](Operands x) { softmax(x[0]); }, {[](Operands x) {
         softmax(x[0], 9);
       }}});
  put({"log_softmax", {kMatrix}, [](Operands x) { log_softmax(x[0]); }, {[](Operands x) {
         log_softmax(x[0], 9);
       }}});

  put({"matmul", {kMatrix, f32({3, 2})}, [](Operands x) { matmul(x[0], x[1]); }});
  put({"matmul", {f32({3}), f32({3, 2})}, [](Operands x) { matmul(x[0], x[1]); }, {[](Operands x) {
         matmul(x[0], x[1], {.transpose_a = true});
       }}});
  put({"dense", {kMatrix, f32({3, 4})}, [](Operands x) { dense(x[0], x[1]); }});
  put({"dense", {kMatrix, f32({3, 4}), f32({4})}, [](Operands x) { dense(x[0], x[1], x[2]); }});
  const Spec row = f32({2, 4, 5}), image = f32({2, 4, 5, 5});
  put({"conv1d",
       {row, f32({3, 4, 2}), f32({3})},
       [](Operands x) { conv1d(x[0], x[1], x[2]); },
       {[](Operands x) { conv1d(x[0], x[1], x[2], {.stride = 0}); },
        [](Operands x) { conv1d(x[0], x[1], x[2], {.dilation = 9}); }}});
  put({"conv1d",
       {row, f32({4, 2, 2})},
       [](Operands x) { conv1d(x[0], x[1], {.groups = 2}); },
       {[](Operands x) { conv1d(x[0], x[1], {.groups = 3}); }}});
  put({"conv2d",
       {image, f32({3, 4, 2, 2}), f32({3})},
       [](Operands x) { conv2d(x[0], x[1], x[2]); },
       {[](Operands x) { conv2d(x[0], x[1], x[2], {.stride = 0}); }}});
  put({"conv2d", {image, f32({3, 4, 2, 2})}, [](Operands x) { conv2d(x[0], x[1]); }});
  put({"conv_transpose1d",
       {row, f32({4, 3, 2}), f32({3})},
       [](Operands x) { conv_transpose1d(x[0], x[1], x[2], {.stride = 2}); },
       {[](Operands x) { conv_transpose1d(x[0], x[1], x[2], {.output_padding = 1}); },
        [](Operands x) { conv_transpose1d(x[0], x[1], x[2], {.padding = 9}); }}});
  put({"conv_transpose1d",  // which pads x
       {row, f32({4, 3, 2})},
       [](Operands x) { conv_transpose1d(x[0], x[1], {.output_padding = 1, .dilation = 2}); },
       {[](Operands x) { conv_transpose1d(x[0], x[1], {.groups = 3}); }}});
  put({"conv_transpose2d",
       {image, f32({4, 3, 2, 2}), f32({3})},
       [](Operands x) { conv_transpose2d(x[0], x[1], x[2]); },
       {[](Operands x) { conv_transpose2d(x[0], x[1], x[2], {.stride = 0}); }}});
  put({"conv_transpose2d",
       {image, f32({4, 3, 2, 2})},
       [](Operands x) { conv_transpose2d(x[0], x[1], {.output_padding = 1, .dilation = 2}); },
       {[](Operands x) { conv_transpose2d(x[0], x[1], {.groups = 3}); }}});
  put({"max_pool1d", {row}, [](Operands x) { max_pool1d(x[0]); }, {[](Operands x) {
         max_pool1d(x[0], {.kernel = 9});
       }}});
  put({"avg_pool1d", {row}, [](Operands x) { avg_pool1d(x[0]); }, {[](Operands x) {
         avg_pool1d(x[0], {.kernel = 0});
       }}});
  put({"max_pool2d", {image}, [](Operands x) { max_pool2d(x[0]); }, {[](Operands x) {
         max_pool2d(x[0], {.kernel = 9});
       }}});
  put({"avg_pool2d", {image}, [](Operands x) { avg_pool2d(x[0]); }, {[](Operands x) {
         avg_pool2d(x[0], {.kernel = 0});
       }}});
  const Spec q = f32({2, 3, 4}), keys = f32({2, 5, 4});
  put({"scaled_dot_product_attention", {q, keys, keys}, [](Operands x) {
         scaled_dot_product_attention(x[0], x[1], x[2]);
       }});
  put({"scaled_dot_product_attention",
       {q, keys, keys, boolean({3, 5})},
       [](Operands x) { scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3].tensor()}); },
       {},
       3});

  const std::vector<Spec> normalised{image, f32({4}), f32({4})};
  put({"layer_norm",
       {kMatrix, f32({3}), f32({3})},
       [](Operands x) { layer_norm(x[0], x[1], x[2]); },
       {[](Operands x) { layer_norm(x[0], {.axes = 9}); },
        [](Operands x) { layer_norm(x[0], {.axes = 0}); }}});
  put({"rms_norm", {kMatrix, f32({3})}, [](Operands x) { rms_norm(x[0], x[1]); }, {[](Operands x) {
         rms_norm(x[0], {.epsilon = -1});
       }}});
  put({"group_norm",
       normalised,
       [](Operands x) { group_norm(x[0], 2, x[1], x[2]); },
       {[](Operands x) { group_norm(x[0], 3, x[1], x[2]); },
        [](Operands x) { group_norm(x[0], 0, x[1], x[2]); }}});
  for (const Phase phase : {Phase::training, Phase::inference})
    put({"batch_norm",
         {image, f32({4}), f32({4}), f32({4}), f32({4})},
         [phase](Operands x) {
           batch_norm(x[0], x[1], x[2], x[3].tensor(), x[4].tensor(), {.phase = phase});
         },
         {[phase](Operands x) {
           batch_norm(x[0], x[1], x[2], x[3].tensor(), x[4].tensor(), {.phase = phase, .axis = 9});
         }}});

  for (const LossReduction how : {LossReduction::mean, LossReduction::none}) {
    const std::vector<Spec> pair{kMatrix, kMatrix};
    put({"mse", pair, [how](Operands x) { mse(x[0], x[1], {how}); }});
    put({"mae", pair, [how](Operands x) { mae(x[0], x[1], {how}); }});
    put({"huber",
         pair,
         [how](Operands x) { huber(x[0], x[1], {.reduction = how}); },
         {[](Operands x) { huber(x[0], x[1], {.delta = 0}); }}});
    put({"smooth_l1",
         pair,
         [how](Operands x) { smooth_l1(x[0], x[1], {.reduction = how}); },
         {[](Operands x) { smooth_l1(x[0], x[1], {.beta = 0}); }}});
    put({"binary_cross_entropy_with_logits", pair,
         [how](Operands x) { binary_cross_entropy_with_logits(x[0], x[1], {.reduction = how}); }});
    put({"binary_cross_entropy_with_logits",
         {kMatrix, kMatrix, f32({3}), f32({3})},
         [how](Operands x) {
           binary_cross_entropy_with_logits(
               x[0], x[1],
               {.weights = x[2].tensor(), .positive_weight = x[3].tensor(), .reduction = how});
         },
         {},
         2});
    put({"kl_divergence", pair, [how](Operands x) { kl_divergence(x[0], x[1], {how}); }});
    put({"softmax_cross_entropy",
         {kMatrix, i64({2})},
         [how](Operands x) { softmax_cross_entropy(x[0], x[1], {.reduction = how}); },
         {[](Operands x) { softmax_cross_entropy(x[0], x[1], {.label_smoothing = 2}); }}});
    put({"softmax_cross_entropy",
         {kMatrix, i64({2}), f32({3})},
         [how](Operands x) {
           softmax_cross_entropy(x[0], x[1], {.weights = x[2].tensor(), .reduction = how});
         },
         {},
         2});
  }

  put({"lstm",
       {f32({2, 5, 3}), f32({3, 16}), f32({4, 16}), f32({16})},
       [](Operands x) {
         const LstmWeights weights{x[1].tensor(), x[2].tensor(), x[3].tensor()};
         lstm(x[0], {&weights, 1});
       },
       {[](Operands x) { lstm(x[0], {}); },
        [](Operands x) {
          const LstmWeights weights{x[1].tensor(), x[2].tensor(), x[3].tensor()};
          lstm(x[0], {&weights, 1}, {.dropout = 1});
        }}});
  put({"gru",
       {f32({2, 5, 3}), f32({3, 12}), f32({4, 12}), f32({16})},
       [](Operands x) {
         const GruWeights weights{x[1].tensor(), x[2].tensor(), x[3].tensor()};
         gru(x[0], {&weights, 1});
       },
       {[](Operands x) { gru(x[0], {}); }}});
  put({"lstm_cell", {f32({2, 3}), f32({3, 16}), f32({4, 16}), f32({16})}, [](Operands x) {
         lstm_cell(x[0], {}, {x[1].tensor(), x[2].tensor(), x[3].tensor()});
       }});
  put({"lstm_cell",
       {f32({2, 3}), f32({3, 16}), f32({4, 16}), f32({16}), f32({2, 4}), f32({2, 4})},
       [](Operands x) {
         lstm_cell(x[0], {x[4].tensor(), x[5].tensor()},
                   {x[1].tensor(), x[2].tensor(), x[3].tensor()});
       }});
  put({"gru_cell", {f32({2, 3}), f32({3, 12}), f32({4, 12}), f32({16})}, [](Operands x) {
         gru_cell(x[0], {}, {x[1].tensor(), x[2].tensor(), x[3].tensor()});
       }});
  put({"gru_cell",
       {f32({2, 3}), f32({3, 12}), f32({4, 12}), f32({16}), f32({2, 4})},
       [](Operands x) {
         gru_cell(x[0], x[4].tensor(), {x[1].tensor(), x[2].tensor(), x[3].tensor()});
       },
       {},
       4});

  put({"uniform_like", {kMatrix}, [](Operands x) { uniform_like(x[0]); }, {[](Operands x) {
         uniform_like(x[0], 1, 0);
       }}});
  put({"normal_like", {kMatrix}, [](Operands x) { normal_like(x[0]); }, {[](Operands x) {
         normal_like(x[0], 0, -1);
       }}});
  put({"bernoulli_like", {kMatrix}, [](Operands x) { bernoulli_like(x[0]); }, {[](Operands x) {
         bernoulli_like(x[0], 2);
       }}});
  for (const double temperature : {0., 1., 2.})
    put({"categorical",
         {kMatrix},
         [temperature](Operands x) { categorical(x[0], temperature); },
         {[](Operands x) { categorical(x[0], -1); }}});
  put({"dropout",
       {kMatrix},
       [](Operands x) { dropout(x[0], 0.5, Phase::training); },
       {[](Operands x) { dropout(x[0], 1, Phase::training); }}});
  put({"assign", {kMatrix, kMatrix}, [](Operands x) { assign(x[0], x[1]); }});
  put({"assign", {kMatrix}, [](Operands x) { assign(x[0], {1, kUser}); }});
  put({"add_assign", {kMatrix, kMatrix}, [](Operands x) { add_assign(x[0], x[1]); }});
  put({"add_assign", {kMatrix}, [](Operands x) { add_assign(x[0], {1, kUser}); }});
  put({"bytes_in_use", {kMatrix}, [](Operands x) { memory::bytes_in_use(x[0]); }});
  put({"max_bytes_in_use", {kMatrix}, [](Operands x) { memory::max_bytes_in_use(x[0]); }});
  put({"bytes_limit", {kMatrix}, [](Operands x) { memory::bytes_limit(x[0]); }});
  return table;
}

// "" where a call is taken, or refused in the name of the function and with the user's line; what
// was said in its place.
std::string misnamed(const std::string& name, const std::function<void()>& call,
                     bool must_refuse = true) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool is_named = message.rfind("[" + name + "] ", 0) == 0;
    return is_named && message.find("(user.cpp:42)") != std::string::npos ? "" : message;
  }
  return must_refuse ? "it was taken" : "";
}

// The operands of a function, eager or of a graph, one of which may be a wrong one.
class Arguments {
 public:
  Arguments(const Function& function, bool symbolic) : function_(function), symbolic_(symbolic) {
    for (const Spec& spec : function.takes) tensors_.push_back(make(spec));
  }

  Tensor make(const Spec& spec) { return make(spec, graph_, Device::cpu()); }
  // Of another graph, or on another device.
  Tensor elsewhere(const Spec& spec) {
    return make(spec, other_graph_, Device::simulated("cpu", std::size_t{1} << 30));
  }
  std::string said(const Call& call, bool must_refuse, std::size_t at = kNowhere,
                   const Operand& wrong = 0) const {
    std::vector<Operand> x;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      x.push_back(i == at ? wrong : Operand(tensors_[i], kUser));
    return misnamed(
        function_.name, [&] { call(x); }, must_refuse);
  }
  // In a graph that cannot be extended: what it is made of cannot be either.
  std::string said_of_closed() const {
    const GraphState::Reading reading(graph_.state());
    return said(function_.call, false);
  }
  // With this tensor in the place of one.
  std::string said(std::size_t at, const Tensor& wrong, bool must_refuse = false) const {
    return said(function_.call, must_refuse, at, {wrong, kUser});
  }

 private:
  static constexpr std::size_t kNowhere = 99;

  Tensor make(const Spec& spec, Graph& graph, const Device& device) {
    return symbolic_ ? graph.placeholder("p" + std::to_string(made_++), spec.dtype, spec.shape)
                     : Tensor::zeros(spec.shape, spec.dtype, device);
  }

  const Function& function_;
  const bool symbolic_;
  int made_ = 0;
  Graph graph_, other_graph_;
  std::vector<Tensor> tensors_;
};

// The functions of tensors that a header of core/ops/ declares for users.
std::set<std::string> declared() {
  namespace fs = std::filesystem;
  const std::regex internal("namespace detail \\{[^]*?\\n\\}"),
      function("\n\\w+ (\\w+)\\(\\s*(?:const Operand&|std::span<const Tensor>)");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "core/ops")) {
    if (entry.path().extension() != ".h") continue;
    std::stringstream read;
    read << std::ifstream(entry.path()).rdbuf();
    const std::string text = read.str();
    if (text.find("\nnamespace ebb::detail {") != std::string::npos) continue;
    const std::string code = std::regex_replace(text, internal, "");
    for (std::sregex_iterator at(code.begin(), code.end(), function), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  return names;
}

}  // namespace

TEST_CASE("Every public function of tensors is asked for its name", "[host]") {
  std::set<std::string> asked;
  for (const Function& function : functions()) asked.insert(function.name);
  const std::set<std::string> names = declared();
  CHECK(names.size() > 80);
  for (const std::string& name : names) {
    INFO(name << " is not in functions() of this file");
    CHECK(asked.count(name) == 1);
  }
}

TEST_CASE("What a function refuses is said in its name and with the user's line") {
  for (const bool symbolic : {false, true})
    for (const Function& function : functions()) {
      INFO(function.name << (symbolic ? ", in a graph" : ", eager"));
      Arguments with(function, symbolic);
      // The table is right: what is refused below is what is wrong.
      if (!symbolic) CHECK(with.said(function.call, true) == "it was taken");
      for (const Call& call : function.refused) CHECK(with.said(call, true) == "");
      if (symbolic) CHECK(with.said_of_closed() == "");
      for (std::size_t i = 0; i < function.takes.size(); ++i) {
        const Spec& spec = function.takes[i];
        INFO("operand " << i);
        CHECK(with.said(i, Tensor(), i < function.optional) == "");
        if (i == 0) CHECK(with.said(function.call, false, i, {2, kUser}) == "");
        // Of what is only like it, no values are read.
        const bool must_refuse =
            function.takes.size() > 1 &&
            (symbolic || (function.name != "sum_like" && function.name != "expand_as"));
        CHECK(with.said(i, with.elsewhere(spec), must_refuse) == "");
        for (const DType dtype : {DType::u8, DType::f64, DType::i32, DType::boolean})
          CHECK(with.said(i, with.make({dtype, spec.shape})) == "");
        Shape larger{7}, first = spec.shape, last = spec.shape;
        for (const std::int64_t size : spec.shape.dims()) larger.push_back(size);
        first.set(0, 7);
        last.set(-1, 11);
        for (const Shape& shape : {larger, first, last, Shape{}, Shape{1, 1, 1, 1, 1, 1}, Shape{0}})
          CHECK(with.said(i, with.make({spec.dtype, shape})) == "");
      }
    }
}

TEST_CASE("What makes tensors of nothing names itself and the user's line") {
  const Shape open{-1};
  const DType i32 = DType::i32;
  CHECK(misnamed("zeros", [&] { zeros(open, {}, kUser); }) == "");
  CHECK(misnamed("ones", [&] { ones(open, {}, kUser); }) == "");
  CHECK(misnamed("full", [&] { full(open, 1, {}, kUser); }) == "");
  CHECK(misnamed("zeros", [&] { Tensor::zeros(open, i32, Device::cpu(), kUser); }) == "");
  CHECK(misnamed("arange", [&] { arange(0, kNaN64, {}, kUser); }) == "");
  CHECK(misnamed("linspace", [&] { linspace(0, 1, -1, {}, kUser); }) == "");
  CHECK(misnamed("eye", [&] { eye(-1, {}, kUser); }) == "");
  CHECK(misnamed("uniform", [&] { uniform(open, {}, kUser); }) == "");
  CHECK(misnamed("uniform", [&] { uniform({2}, {.dtype = i32}, kUser); }) == "");
  CHECK(misnamed("normal", [&] { normal({2}, {.dtype = i32}, kUser); }) == "");
  CHECK(misnamed("bernoulli", [&] { bernoulli({2}, {.probability = 2}, kUser); }) == "");
  CHECK(misnamed("randint", [&] { randint(1, 1, {2}, {}, kUser); }) == "");
  CHECK(misnamed("permutation", [&] { permutation(-1, {}, kUser); }) == "");
  CHECK_ERROR(permutation(std::int64_t{1} << 62), ShapeError,
              "[permutation] the shape [4611686018427387904] has more elements than a tensor can");
  Graph graph;
  CHECK(misnamed("uniform", [&] { uniform(graph, open, {}, kUser); }) == "");
  CHECK(misnamed("randint", [&] { randint(graph, 1, 1, {2}, {}, kUser); }) == "");
  CHECK(misnamed("permutation", [&] { permutation(graph, -1, kUser); }) == "");
  {
    const GraphState::Reading reading(graph.state());
    CHECK(misnamed("uniform", [&] { uniform(graph, {2}, {}, kUser); }) == "");
    CHECK(misnamed("randint", [&] { randint(graph, 0, 9, {2}, {}, kUser); }) == "");
    CHECK(misnamed("permutation", [&] { permutation(graph, 9, kUser); }) == "");
  }
  CHECK(misnamed("clone", [&] { Tensor().clone(kUser); }) == "");
  CHECK(misnamed("to", [&] { Tensor().to(Device::cpu(), kUser); }) == "");
}

TEST_CASE("What is made of other functions tells the shapes that it was given") {
  const Tensor row = Tensor::zeros({2, 4, 5}), kernel = Tensor::zeros({3, 4, 2});
  CHECK_ERROR(conv1d(row, kernel, {.dilation = 9}), ShapeError,
              "[conv1d] the kernel is longer than x, padding and all; inputs are f32[2, 4, 5], "
              "f32[3, 4, 2] (");
  CHECK_ERROR(conv1d(row, kernel, Tensor::zeros({2})), ShapeError,
              "[conv1d] the bias must be [out] for weights [out, in / groups, k]; inputs are "
              "f32[2, 4, 5], f32[3, 4, 2], f32[2] (");
  CHECK_ERROR(conv_transpose1d(row, Tensor::zeros({4, 3, 2}), {.padding = 9}), ShapeError,
              "[conv_transpose1d] the padding leaves nothing of the result; inputs are "
              "f32[2, 4, 5], f32[4, 3, 2] (");
  const Tensor doubles = Tensor::zeros({4, 4, 2}, DType::f64);
  CHECK_ERROR(conv1d(row, doubles), ShapeError, "inputs are f32[2, 4, 5], f64[4, 4, 2] (");
  CHECK_ERROR(conv_transpose1d(row, doubles), ShapeError,
              "inputs are f32[2, 4, 5], f64[4, 4, 2] (");
  CHECK_ERROR(max_pool1d(row, {.kernel = 6}), ShapeError,
              "[max_pool1d] the kernel is longer than x, padding and all; the input is "
              "f32[2, 4, 5] (");
  CHECK_ERROR(topk(row, 5, {.axis = 1}), ShapeError,
              "[topk] there are no 5 elements along axis 1; the input is f32[2, 4, 5] (");
  const Tensor x = Tensor::zeros({2, 3});
  const GruWeights weights{Tensor::zeros({3, 12}), Tensor::zeros({4, 12}), Tensor::zeros({16})};
  CHECK_ERROR(gru_cell(x, Tensor::zeros({2, 5}), weights), ShapeError,
              "[gru_cell] the state must be [batch, hidden]; inputs are f32[2, 3], f32[2, 5], "
              "f32[3, 12], f32[4, 12], f32[16] (");
  CHECK_ERROR(gru_cell(Tensor::zeros({2, 4}), {}, weights), ShapeError,
              "[gru_cell] the weights must be [in, 3 hidden], [hidden, 3 hidden], [4 hidden]; "
              "inputs are f32[2, 4], f32[3, 12], f32[4, 12], f32[16] (");
}

}  // namespace ebb::tests
