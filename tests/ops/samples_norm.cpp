#include "ebb/core/kernels/norm.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Kind = NormAttributes::Kind;

struct How {
  const char* name;
  const OpDef* op;
  Kind kind;
  int number;
  Shape x, scale;
  int scales = 2;  // scale and shift, the scale alone, or none

  bool is_batch() const { return kind == NormAttributes::batch; }
  NormAttributes attributes() const {
    return {.epsilon = 0.1,
            .momentum = is_batch() ? 0.25 : 0,
            .kind = kind,
            .number = number,
            .has_scale = scales > 0,
            .has_shift = scales > 1};
  }
  std::vector<SampleInput> inputs() const {
    std::vector<SampleInput> all = {{x}};
    all.resize(static_cast<std::size_t>(1 + scales), {scale, Values::apart_from_zero});
    return all;
  }
  // The running values of a batch norm are its scale and shift as well.
  Tensors run(const Tensors& in) const {
    Tensors given(in.begin(), in.begin() + 1 + scales);
    if (is_batch())
      for (const std::size_t i : {1, 2})
        given.push_back(cast(in[i], in[0].dtype() == DType::f64 ? DType::f64 : DType::f32));
    const InlineVector<Input, 5> inputs(given.begin(), given.end());
    return apply(*op, {inputs.data(), inputs.size()}, attributes(), {});
  }
};

// Of dx, d_scale and d_shift those of `wanted`, a bit each, given what the forward operator keeps.
Sample backward(const How& how, unsigned wanted) {
  Sample sample{.op = how.is_batch() ? &batch_norm_backward_op : &norm_backward_op,
                .name = std::string(how.op->name) + "_backward" + how.name + ", wanted " +
                        std::to_string(wanted),
                .inputs = how.inputs(),
                .call =
                    [how, wanted](const Tensors& in) {
                      // As constants: the statistics are functions of x, which the composed form
                      // knows.
                      Tensors kept = in;
                      kept[0] = in[0].is_symbolic() ? in[0] : in[0].detach().with_grad();
                      const Tensors made = how.run(kept);
                      const Tensor& inverse = made[1];
                      InlineVector<Input, 5> inputs{in.back(), in[0], inverse, inverse};
                      if (how.attributes().has_mean()) inputs[3] = made[2];
                      if (how.scales > 0) inputs.push_back(in[1]);
                      IndexSet unwanted;
                      for (std::size_t i = 0; i < 3; ++i)
                        if ((wanted >> i & 1) == 0) unwanted.insert(i);
                      const Tensors all =
                          apply(how.is_batch() ? batch_norm_backward_op : norm_backward_op,
                                {inputs.data(), inputs.size()}, how.attributes(), {}, unwanted);
                      Tensors results;
                      for (std::size_t i = 0; i < 3; ++i)
                        if ((wanted >> i & 1) != 0) results.push_back(all[i]);
                      return results;
                    },
                // Checked by what it is called for: the shapes come from nodes that were checked.
                .any_dtype = true,
                .any_shape = true};
  sample.inputs.push_back({how.x});
  return sample;
}

}  // namespace

void add_norm_samples(std::vector<Sample>& samples, DType dtype) {
  using enum NormAttributes::Kind;
  const How all[] = {
      {"", &layer_norm_op, layer, 1, {kOpen, 5}, {5}},
      {" of wide rows", &layer_norm_op, layer, 1, {kOpen, 70}, {70}},
      {" without scale", &layer_norm_op, layer, 1, {kOpen, 2, 4}, {4}, 0},
      {" over two axes", &layer_norm_op, layer, 2, {kOpen, 3, 4}, {3, 4}},
      {"", &rms_norm_op, rms, 1, {2, kOpen, 5}, {5}, 1},
      {" without scale", &rms_norm_op, rms, 2, {kOpen, 2, 4}, {2, 4}, 0},
      {"", &group_norm_op, group, 2, {kOpen, 4, 3}, {4}},
      {" of images", &group_norm_op, group, 3, {kOpen, 6, 2, 9}, {6}},
      {" of single features", &group_norm_op, group, 2, {kOpen, 6}, {6}},
      {"", &batch_norm_op, batch, 1, {kOpen, 3, 4}, {3}},
      {" of images", &batch_norm_op, batch, 1, {kOpen, 2, 3, 7}, {2}},
      {" with channels last", &batch_norm_op, batch, 2, {kOpen, 2, 70}, {70}},
  };
  for (const How& how : all) {
    samples.push_back({.op = how.op,
                       .name = std::string(how.op->name) + how.name,
                       .inputs = how.inputs(),
                       .call = [how](const Tensors& in) -> Tensors { return {how.run(in)[0]}; },
                       .any_shape = true});
    for (unsigned wanted = 1; wanted < (how.scales > 1   ? 8
                                        : how.scales > 0 ? 4
                                                         : 2);
         wanted += is_half(dtype) ? 2 : 1)
      samples.push_back(backward(how, wanted));
  }
  const DType statistics = dtype == DType::f64 ? dtype : DType::f32;
  for (const int axis : {1, 2})
    samples.push_back({.op = &batch_norm_inference_op,
                       .name = "batch_norm, inference, axis " + std::to_string(axis),
                       .inputs = {{{kOpen, 3, 3}}, {{3}}, {{3}, Values::positive}, {{3}}, {{3}}},
                       .call = [axis, statistics](const Tensors& in) -> Tensors {
                         return {batch_norm(in[0], in[3], in[4], cast(in[1], statistics),
                                            cast(in[2], statistics), {.axis = axis})};
                       },
                       .any_shape = true});
}

}  // namespace ebb::tests
