#include "ebb/tests/ops/samples.h"

#include "ebb/core/ops/all_operators.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/optim/all_operators.h"

namespace ebb::tests {

std::vector<const OpDef*> every_operator() {
  std::vector<const OpDef*> all(all_operators().begin(), all_operators().end());
  all.insert(all.end(), optim::all_operators().begin(), optim::all_operators().end());
  return all;
}

std::function<Tensors(const Tensors&)> applying(const OpDef& op, const Attributes& attributes) {
  return [&op, attributes](const Tensors& in) {
    const std::vector<Input> given(in.begin(), in.end());
    return apply(op, given, attributes, {});
  };
}

Tensors wanted_of(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                  unsigned wanted) {
  const std::vector<Input> given(inputs.begin(), inputs.end());
  IndexSet unwanted;
  for (std::size_t i = 0; i < 3; ++i)
    if ((wanted >> i & 1) == 0) unwanted.insert(i);
  const Tensors all = apply(op, given, attributes, {}, unwanted);
  Tensors results;
  for (std::size_t i = 0; i < 3; ++i)
    if ((wanted >> i & 1) != 0) results.push_back(all[i]);
  return results;
}

Sample of_two(const OpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& a, const SampleInput& b) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = {a, b},
          .call = EBB_CALL(call(in[0], in[1])),
          .any_shape = true,
          .reference = [f](const Application& x) -> Arrays { return {zip(x[0], x[1], f)}; },
          .of_two = f};
}

Sample beside(const BinaryOpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& x, double number, bool left) {
  const OpDef& of_one = left ? op.number_left : op.number_right;
  return {.op = &of_one,
          .name = std::string(of_one.name) + ", " + how + (left ? " on the right" : " on the left"),
          .inputs = {x},
          .call = EBB_CALL(left ? call(number, in[0]) : call(in[0], number)),
          .any_shape = true,
          .reference = [=](const Application& a) -> Arrays {
            const double n = a.attribute<NumberOperand>().value;
            return {map(a[0], [=](double y) { return left ? f(n, y) : f(y, n); })};
          }};
}

Sample moving_sample(const OpDef& op, const char* how, std::vector<SampleInput> inputs,
                     std::function<Tensors(const Tensors&)> call, bool any_shape) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = std::move(inputs),
          .call = std::move(call),
          .any_dtype = true,
          .any_shape = any_shape};
}

std::vector<Sample> all_samples(DType dtype) {
  std::vector<Sample> samples;
  add_pointwise_samples(samples);
  add_comparison_samples(samples);
  add_copy_samples(samples);
  add_create_samples(samples, dtype);
  add_reduce_samples(samples);
  add_linear_samples(samples, dtype);
  add_conv_samples(samples, dtype);
  add_pool_samples(samples);
  add_attention_samples(samples, dtype);
  add_loss_samples(samples);
  add_norm_samples(samples, dtype);
  add_random_samples(samples, dtype);
  add_recurrent_samples(samples, dtype);
  add_shape_samples(samples);
  add_index_samples(samples);
  add_sequence_samples(samples);
  add_layout_samples(samples);
  add_where_samples(samples);
  add_order_samples(samples);
  add_statistic_samples(samples);
  add_update_samples(samples);
  add_memory_figure_samples(samples);
  add_optim_samples(samples, dtype);
  return samples;
}

}  // namespace ebb::tests
