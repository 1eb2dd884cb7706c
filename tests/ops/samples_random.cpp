#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_random_samples(std::vector<Sample>& samples, DType dtype) {
  const struct {
    const OpDef& op;
    double a, b;
  } creations[] = {{uniform_op, -1, 3}, {normal_op, 1, 2}, {bernoulli_op, 0.3, 1}};
  for (const auto& [op, a, b] : creations)
    for (const std::int64_t size : {0, 1, 7})
      samples.push_back({.op = &op,
                         .name = std::string(op.name) + " of " + std::to_string(size) + " rows",
                         .inputs = {{{2}, Values::draw}},
                         .call =
                             [&op = op, attributes = detail::creation_attributes(
                                            a, b, {size, 3}, dtype)](const Tensors& in) {
                               const Input inputs[] = {in[0]};
                               return apply(op, inputs, attributes, {});
                             },
                         .order = 0});

  for (const DType of : {DType::i32, DType::i64, DType::u8})
    for (const std::int64_t size : {0, 1, 7})
      samples.push_back(
          {.op = &randint_op,
           .name = std::string("randint, ") + name(of) + " of " + std::to_string(size) + " rows",
           .inputs = {{{2}, Values::draw}},
           .call = [attributes = detail::randint_attributes(3, 9, {size, 5}, of, {})](
                       const Tensors& in) -> Tensors {
             return {apply_one(randint_op, {in[0]}, attributes, {})};
           },
           .order = 0});

  const struct {
    const OpDef& op;
    double a, b;
  } likes[] = {{uniform_like_op, -1, 3}, {normal_like_op, 1, 2}, {bernoulli_like_op, 0.3, 1}};
  for (const auto& [op, a, b] : likes)
    samples.push_back({.op = &op,
                       .name = std::string(op.name),
                       .inputs = {{{2}, Values::draw}, {{kOpen, 5}}},
                       .call =
                           [&op = op, a = a, b = b](const Tensors& in) {
                             const Input inputs[] = {in[0], in[1]};
                             return apply(op, inputs, RandomAttributes{a, b}, {});
                           },
                       .order = 0,
                       .any_shape = true});

  samples.push_back({.op = &dropout_op,
                     .name = "dropout",
                     .inputs = {{{kOpen, 6}}, {{2}, Values::draw}},
                     .call =
                         [](const Tensors& in) {
                           const Input inputs[] = {in[0], in[1]};
                           return apply(dropout_op, inputs, RandomAttributes{.a = 0.4}, {});
                         },
                     .any_shape = true});
  samples.push_back({.op = &draw_op,
                     .name = "draw",
                     .inputs = {{{2}, Values::draw}},
                     .call =
                         [](const Tensors& in) {
                           const Input inputs[] = {in[0]};
                           return apply(draw_op, inputs, DrawAttributes{.node = 9}, {});
                         },
                     .order = 0});
  samples.push_back({.op = &next_run_op,
                     .name = "next_run",
                     .inputs = {{{2}, Values::draw}},
                     .call =
                         [](const Tensors& in) {
                           const Input inputs[] = {in[0]};
                           return apply(next_run_op, inputs, {}, {});
                         },
                     .order = 0});
  for (const std::int64_t size : {0, 1, 7})
    samples.push_back({.op = &full_op,
                       .name = "full of " + std::to_string(size) + " rows",
                       .inputs = {},
                       .call = [size, dtype](const Tensors&) -> Tensors {
                         return {Tensor::full({size, 3}, 1.5, dtype)};
                       },
                       .order = 0});
}

}  // namespace ebb::tests
