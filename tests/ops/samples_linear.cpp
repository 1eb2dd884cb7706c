#include "ebb/core/ops/linear.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

const char* name_of(Activation activation) {
  constexpr const char* names[] = {"none", "relu", "tanh", "sigmoid"};
  return names[static_cast<int>(activation)];
}

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::tanh,
                                       Activation::sigmoid};

Sample matmul_sample(bool ta, bool tb, const char* how, Shape a, Shape b) {
  return {.op = &matmul_op,
          .name = std::string("matmul") + how + (ta ? ", a transposed" : "") +
                  (tb ? ", b transposed" : ""),
          .inputs = {{a}, {b}},
          .call = [ta, tb](const Tensors& in) -> Tensors {
            return {matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})};
          },
          .any_shape = true};
}

// Of dx, dw and db those of `wanted`, a bit each.
Sample dense_backward_sample(unsigned wanted, Shape x, Shape da) {
  return {.op = &dense_backward_op,
          .name = "dense_backward, wanted " + std::to_string(wanted) +
                  (x.rank() > 2 ? ", on sequences" : ""),
          .inputs = {{x}, {{3, 4}}, {da}},
          .call =
              [wanted](const Tensors& in) {
                const Input inputs[] = {in[0], in[1], in[2]};
                IndexSet unwanted;
                for (std::size_t i = 0; i < 3; ++i)
                  if ((wanted >> i & 1) == 0) unwanted.insert(i);
                const Tensors all = apply(dense_backward_op, inputs, {}, {}, unwanted);
                Tensors results;
                for (std::size_t i = 0; i < 3; ++i)
                  if ((wanted >> i & 1) != 0) results.push_back(all[i]);
                return results;
              },
          // Checked by what it is called for: the shapes come from nodes that have been checked.
          .any_dtype = true,
          .any_shape = true};
}

}  // namespace

void add_linear_samples(std::vector<Sample>& samples, DType dtype) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const auto add = [&](const char* how, std::initializer_list<std::int64_t> batch_a, Shape a,
                           std::initializer_list<std::int64_t> batch_b, Shape b) {
        if (ta) a = {a.dim(1), a.dim(0)};
        if (tb) b = {b.dim(1), b.dim(0)};
        Shape first = batch_a, second = batch_b;
        for (const std::int64_t n : a.dims()) first.push_back(n);
        for (const std::int64_t n : b.dims()) second.push_back(n);
        samples.push_back(matmul_sample(ta, tb, how, first, second));
      };
      add("", {}, {kOpen, 4}, {}, {4, 5});
      add(", a batch of pairs", {kOpen}, {2, 4}, {kOpen}, {4, 3});
      add(", a batch by one matrix", {2, kOpen}, {3, 4}, {}, {4, 5});
      if (is_half(dtype)) continue;
      add(", one matrix by a batch", {}, {3, 4}, {2, kOpen}, {4, 2});
      if (ta == tb) add(", along different axes", {kOpen, 1, 2}, {3, 2}, {3, 1}, {2, 4});
    }
  samples.push_back(matmul_sample(false, false, ", two vectors", {kOpen}, {kOpen}));
  samples.push_back(matmul_sample(false, false, ", a matrix by a vector", {kOpen, 4}, {4}));
  samples.push_back(matmul_sample(false, true, ", a vector by a batch", {4}, {2, kOpen, 4}));

  for (const Activation activation : kActivations) {
    const OpDef& op = activation == Activation::none ? dense_op : dense_activated_op;
    const std::string name = std::string("dense, ") + name_of(activation);
    samples.push_back({.op = &op,
                       .name = name,
                       .inputs = {{{kOpen, 3}}, {{3, 4}}, {{4}}},
                       .call = [activation](const Tensors& in) -> Tensors {
                         return {dense(in[0], in[1], in[2], activation)};
                       },
                       .any_shape = true});
    samples.push_back({.op = &op,
                       .name = name + ", without bias, on sequences",
                       .inputs = {{{kOpen, 2, 3}}, {{3, 4}}},
                       .call = [activation](const Tensors& in) -> Tensors {
                         return {dense(in[0], in[1], activation)};
                       },
                       .any_shape = true});
    if (activation == Activation::none) continue;
    samples.push_back({.op = &activation_backward_op,
                       .name = std::string("activation_backward, ") + name_of(activation),
                       .inputs = {{{kOpen, 4}}, {{kOpen, 4}, Values::apart_from_zero}},
                       .call =
                           [activation](const Tensors& in) {
                             const Input inputs[] = {in[0], in[1]};
                             return apply(activation_backward_op, inputs,
                                          ActivationAttributes{activation}, {});
                           },
                       .any_shape = true});
  }
  for (unsigned wanted = 1; wanted < 8; wanted += is_half(dtype) ? 2 : 1)
    samples.push_back(dense_backward_sample(wanted, {kOpen, 3}, {kOpen, 4}));
  samples.push_back(dense_backward_sample(7, {2, kOpen, 3}, {2, kOpen, 4}));
}

}  // namespace ebb::tests
