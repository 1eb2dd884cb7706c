#include "ebb/core/ops/activations.h"

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {

#include "ebb/core/ops/define_pointwise.inc"
// The list:
#include "ebb/core/kernels/functors/activations.inc"

using detail::Gradient, detail::pair, detail::unary;

constinit const OpDef sigmoid_op =
    unary<functors::Sigmoid>("sigmoid", {.gradient = [](Gradient g) -> Tensors {
                                           Tensor rest = 1 - g.y();
                                           return {g.take_dy() * (g.take_y() * std::move(rest))};
                                         },
                                         .keeps = output(0)});

constinit const OpDef softplus_op = unary<functors::Softplus>(
    "softplus",
    {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * sigmoid(g.take_x(0))}; },
     .keeps = input(0)});

constinit const OpDef relu_op = unary<functors::Relu>(
    "relu",
    {.gradient = [](Gradient g) -> Tensors { return {relu_gradient(g.take_dy(), g.take_y())}; },
     .keeps = output(0)});

constinit const OpDef relu_gradient_op = pair<functors::ReluGradient>(
    "relu_gradient", {.gradient = [](Gradient g) -> Tensors {
                        return {relu_gradient(g.take_dy(), g.take_x(1)), {}};
                      },
                      .keeps = input(1)});

}  // namespace ebb
