#include "ebb/core/ops/linear.h"

#include <array>

#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

// The shape of a product of matrices or vectors.
Shape product_shape(const Inference& inference) {
  detail::require_arithmetic(inference);
  const auto& attributes = inference.attribute<MatmulAttributes>();
  const Shape& a = inference.inputs[0].shape;
  const Shape& b = inference.inputs[1].shape;
  inference.require(a.rank() >= 1 && b.rank() >= 1, "takes matrices or vectors, not a scalar");
  inference.require(
      (a.rank() > 1 || !attributes.transpose_a) && (b.rank() > 1 || !attributes.transpose_b),
      "transposes matrices, not a vector");
  const int inner_a = a.rank() - (attributes.transpose_a ? 2 : 1);
  const int inner_b = b.rank() - (attributes.transpose_b || b.rank() == 1 ? 1 : 2);
  if (!detail::may_equal(a.dim(inner_a), b.dim(inner_b)))
    inference.fail("axis " + std::to_string(inner_a) + " of the first matrix and axis " +
                   std::to_string(inner_b) + " of the second must have one size");
  Shape out;
  if (a.rank() > 2 || b.rank() > 2)
    out = detail::broadcast(inference, batch_axes(a), batch_axes(b));
  if (a.rank() > 1) out.push_back(a.dim(attributes.transpose_a ? -1 : -2));
  if (b.rank() > 1) out.push_back(b.dim(attributes.transpose_b ? -2 : -1));
  return out;
}

constexpr OpDef matmul_function{.name = "matmul",
                                .infer = [](Inference& inference) { product_shape(inference); }};

void infer_matmul(Inference& inference) {
  const Shape out = product_shape(inference);
  for (const Spec& factor : inference.inputs)
    inference.require(factor.shape.rank() >= 2, "takes matrices");
  inference.output(inference.inputs[0].dtype, out);
}

// With A = op(a), B = op(b): dA = dy B^T, dB = A^T dy, each transposed again where op transposes.
// Inputs that only dA reads are freed before dB is made. The gradient of a broadcast factor is
// summed over the matrices that it meets; where one B meets all rows of A, the product itself makes
// that sum.
Tensors matmul_gradient(Gradient g) {
  const auto& attributes = g.attribute<MatmulAttributes>();
  const bool ta = attributes.transpose_a;
  const bool tb = attributes.transpose_b;
  const bool is_batch = g.dy().rank() > 2;
  const bool by_rows = is_batch && g.x(1).rank() == 2 && !ta;
  Tensor da, db;
  if (g.wants(0)) {
    da = ta ? matmul(g.take_x(1), g.dy(), {.transpose_a = tb, .transpose_b = true})
            : matmul(g.dy(), g.take_x(1), {.transpose_b = !tb});
    if (is_batch && !by_rows) da = sum_like(std::move(da), g.x(0));
  }
  if (g.wants(1)) {
    const Tensor a = by_rows ? detail::as_matrix(g.x(0)) : g.x(0);
    const Tensor dy = by_rows ? detail::as_matrix(g.dy()) : g.dy();
    db = tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta})
            : matmul(a, dy, {.transpose_a = !ta});
    if (is_batch && !by_rows) db = sum_like(std::move(db), g.x(1));
  }
  return {da, db};
}

void infer_dense(Inference& inference) {
  detail::require_arithmetic(inference);
  const Shape& x = inference.inputs[0].shape;
  const Shape& w = inference.inputs[1].shape;
  inference.require(x.rank() >= 1 && w.rank() == 2, "takes x [..., in] and a weight [in, out]");
  inference.require(detail::may_equal(x.dim(-1), w.dim(0)),
                    "the last axis of x must have the size of the weight's first");
  if (inference.attribute<DenseAttributes>().bias) {
    const Shape& b = inference.inputs[2].shape;
    inference.require(b.rank() == 1 && detail::may_equal(b.dim(0), w.dim(1)),
                      "the bias must be [out] for a weight [in, out]");
  }
  Shape y = x;
  y.set(-1, w.dim(1));
  inference.output(inference.inputs[0].dtype, y);
}

void infer_dense_backward(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const Spec& w = inference.inputs[1];
  for (const Shape& shape : {x.shape, w.shape, Shape{w.shape.dim(1)}})
    inference.output(x.dtype, shape);
}

// The gradient before the activation. It takes the memory of dy, and the result y, which only this
// step reads, is free before the products.
Tensor before_activation(Gradient g) {
  const Activation activation = g.attribute<DenseAttributes>().activation;
  if (activation == Activation::none) return g.take_dy();
  return apply_one(activation_backward_op, {Operand(g.take_dy()), Operand(g.take_y())},
                   ActivationAttributes{activation}, g.site());
}

Tensors dense_gradient(Gradient g) {
  const Tensor da = before_activation(g), w = g.x(1);
  return detail::apply_gradient(dense_backward_op, 3,
                                std::array<Input, 3>{Operand(g.take_x(0)), w, da}, {}, g);
}

// activation_backward from differentiable operators.
Tensors compose_activation_backward(std::span<const Tensor> inputs, const Attributes& attributes,
                                    const IndexSet&) {
  const Tensor &dy = inputs[0], &y = inputs[1];
  switch (attributes.get<ActivationAttributes>().activation) {
    case Activation::relu:
      return {relu_gradient(dy, y)};
    case Activation::tanh:
      return {dy * (1 - square(y))};
    default:  // sigmoid
      return {dy * (y * (1 - y))};
  }
}

// dense_backward from differentiable operators, on x and da as matrices.
Tensors compose_dense_backward(std::span<const Tensor> inputs, const Attributes&,
                               const IndexSet& unwanted) {
  const Tensor& x = inputs[0];
  const Tensor& w = inputs[1];
  const Tensor da = detail::as_matrix(inputs[2]);
  Tensors outputs(3);
  if (!unwanted.has(0)) outputs[0] = detail::reshape_like(matmul(da, w, {.transpose_b = true}), x);
  if (!unwanted.has(1)) outputs[1] = matmul(detail::as_matrix(x), da, {.transpose_a = true});
  if (!unwanted.has(2)) outputs[2] = sum(da, {.axis = 0});
  return outputs;
}

Tensor apply_dense(const ListOf<Operand>& operands, Activation activation) {
  if (activation > Activation::sigmoid)
    return detail::activate({apply_dense(operands, Activation::none), operands.front().site()},
                            activation);
  return detail::apply_to(activation == Activation::none ? dense_op : dense_activated_op, operands,
                          DenseAttributes{activation, operands.size() == 3});
}

// Each output element is a sum over the inner axis.
std::int64_t matmul_products(const MemoryQuery& query) {
  const bool transposed = query.attribute<MatmulAttributes>().transpose_a;
  return query.outputs[0].shape.elements() * query.inputs[0].shape.dim(transposed ? -2 : -1);
}

std::int64_t dense_products(const MemoryQuery& query) {
  return query.outputs[0].shape.elements() * query.inputs[1].shape.dim(0);
}

// Products for dx and for dw, as far as they are wanted.
std::int64_t dense_backward_products(const MemoryQuery& query) {
  return query.inputs[2].shape.elements() * query.inputs[1].shape.dim(0) *
         (int{query.wants(0)} + int{query.wants(1)});
}

constexpr OpDef dense_layer(const char* name, Keeps keeps) {
  return {
      .name = name,
      .infer = infer_dense,
      .gradient = dense_gradient,
      .keeps = keeps,
      .keeps_input = detail::other_factor,
      .products = dense_products,
      .cpu = cpu::in_float<cpu::dense>,
      .cuda = {.run = cuda::dense, .memory = cuda::dense_memory, .prepare = cuda::dense_prepare}};
}

}  // namespace

Tensor detail::activate(const Operand& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return relu(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, {.approximate = true});
    case Activation::silu:
      return silu(x);
    case Activation::leaky_relu:
      return leaky_relu(x);
    case Activation::elu:
      return elu(x);
    case Activation::softplus:
      return softplus(x);
  }
  return x.take();
}

Tensor matmul(const Operand& a, const Operand& b, MatmulOptions options) {
  const int a_rank = detail::tensor_of(matmul_op, a).rank();
  const int b_rank = detail::tensor_of(matmul_op, b).rank();
  const MatmulAttributes attributes{options.transpose_a, options.transpose_b};
  if (a_rank > 1 && b_rank > 1) return apply_one(matmul_op, {a, b}, attributes, a.site());

  // A vector becomes a matrix of one row or one column. The check before names the shapes as given.
  const detail::CalledScope called = detail::check(matmul_function, {a, b}, attributes);
  const Tensor rows = a_rank == 1 ? unsqueeze(a, 0) : a.take();
  const Tensor columns = b_rank == 1 ? unsqueeze(b, 1) : b.take();
  Axes added;
  if (a_rank == 1) added.push_back(-2);
  if (b_rank == 1) added.push_back(-1);
  return squeeze({apply_one(matmul_op, {rows, columns}, attributes, a.site()), a.site()}, added);
}

Tensor dense(const Operand& x, const Operand& w, const Operand& b, Activation activation) {
  return apply_dense({x, w, b}, activation);
}

Tensor dense(const Operand& x, const Operand& w, Activation activation) {
  return apply_dense({x, w}, activation);
}

constinit const OpDef matmul_op{
    .name = "matmul",
    .infer = infer_matmul,
    .gradient = matmul_gradient,
    .keeps_input = detail::other_factor,
    .products = matmul_products,
    .cpu = cpu::in_float<cpu::matmul>,
    .cuda = {.run = cuda::matmul, .memory = cuda::matmul_memory, .prepare = cuda::matmul_prepare}};

constinit const OpDef dense_op = dense_layer("dense", {});
constinit const OpDef dense_activated_op = dense_layer("dense", output(0));

constinit const OpDef dense_backward_op{
    .name = "dense_backward",
    .infer = infer_dense_backward,
    .compose = compose_dense_backward,
    // dw reads x, dx reads w.
    .is_shape_only = detail::other_factor,
    .takes_over = bit(0),
    .optional_outputs = kAll,
    .products = dense_backward_products,
    .cpu = cpu::in_float<cpu::dense_backward, cpu::dense_backward_memory, detail::other_factor>,
    .cuda = {.run = cuda::dense_backward,
             .memory = cuda::dense_backward_memory,
             .prepare = cuda::dense_backward_prepare}};

constinit const OpDef activation_backward_op{.name = "activation_backward",
                                             .infer = detail::infer_pair,
                                             .compose = compose_activation_backward,
                                             .takes_over = bit(0) | bit(1),
                                             .cpu = {cpu::activation_backward},
                                             .cuda = {cuda::activation_backward}};

}  // namespace ebb
