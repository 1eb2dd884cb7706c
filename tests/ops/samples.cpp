#include "ebb/tests/ops/samples.h"

#include <set>

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

Sample sample_of(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                 std::function<Tensors(const Tensors&)> call, int order) {
  return {.op = &op,
          .name = op.name + (how.empty() ? "" : ", " + how),
          .inputs = std::move(inputs),
          .call = std::move(call),
          .order = order};
}

Sample of_any_shape(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                    std::function<Tensors(const Tensors&)> call, int order) {
  Sample sample = sample_of(op, how, std::move(inputs), std::move(call), order);
  sample.any_shape = true;
  return sample;
}

Sample moving_sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                     std::function<Tensors(const Tensors&)> call, bool any_shape) {
  Sample sample = sample_of(op, how, std::move(inputs), std::move(call));
  sample.any_dtype = true;
  sample.any_shape = any_shape;
  return sample;
}

Sample of_two(const OpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& a, const SampleInput& b) {
  Sample sample = of_any_shape(op, how, {a, b}, EBB_CALL(call(in[0], in[1])));
  sample.reference = [f](const Application& x) -> Arrays { return {zip(x[0], x[1], f)}; };
  sample.of_two = f;
  return sample;
}

Sample beside(const BinaryOpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& x, double number, bool left) {
  Sample sample = of_any_shape(left ? op.number_left : op.number_right,
                               how + (left ? " on the right" : " on the left"), {x},
                               EBB_CALL(left ? call(number, in[0]) : call(in[0], number)));
  sample.reference = [=](const Application& a) -> Arrays {
    const double n = a.attribute<NumberOperand>().value;
    return {map(a[0], [=](double y) { return left ? f(n, y) : f(y, n); })};
  };
  return sample;
}

namespace {

void add_all(std::vector<Sample>& samples, References& references, DType dtype) {
  for (Family* const add :
       {pointwise_family, comparison_family, copy_family,          create_family,
        reduce_family,    linear_family,     conv_family,          pool_family,
        attention_family, loss_family,       cross_entropy_family, norm_family,
        random_family,    recurrent_family,  shape_family,         index_family,
        sequence_family,  layout_family,     where_family,         order_family,
        statistic_family, update_family,     memory_figure_family, collective_family,
        optim_family})
    add(samples, references, dtype);
}

}  // namespace

std::vector<Sample> all_samples(DType dtype) {
  std::vector<Sample> samples;
  References references;
  add_all(samples, references, dtype);
  return samples;
}

std::vector<Reference> all_references() {
  std::vector<Sample> samples;
  References references;
  add_all(samples, references, DType::f64);
  std::set<const OpDef*> known;
  for (const Reference& reference : references.all) known.insert(reference.op);
  for (const Sample& sample : samples)
    if (sample.reference && known.insert(sample.op).second)
      references.add(*sample.op, sample.reference);
  return references.all;
}

}  // namespace ebb::tests
