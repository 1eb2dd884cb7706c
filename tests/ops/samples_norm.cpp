#include <cmath>

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
  // A batch norm is given its scale and shift as running values, too.
  Tensors run(const Tensors& in) const {
    Tensors given(in.begin(), in.begin() + 1 + scales);
    if (is_batch())
      for (const std::size_t i : {1u, 2u})
        given.push_back(cast(in[i], in[0].dtype() == DType::f64 ? DType::f64 : DType::f32));
    const InlineVector<Input, 5> inputs(given.begin(), given.end());
    return apply(*op, {inputs.data(), inputs.size()}, attributes(), {});
  }
};

// Sample of a backward operator, given what the forward operator keeps. The bits of `wanted` are
// dx, d_scale and d_shift.
Sample backward(const How& how, unsigned wanted) {
  const OpDef& op = how.is_batch() ? batch_norm_backward_op : norm_backward_op;
  std::vector<SampleInput> given = how.inputs();
  given.push_back({how.x});
  const auto call = [&op, how, wanted](const Tensors& in) {
    // The statistics must be constants here: the composed form already treats them as functions
    // of x.
    Tensors kept = in;
    kept[0] = in[0].is_symbolic() ? in[0] : in[0].detach().with_grad();
    const Tensors made = how.run(kept);
    const Tensor& inverse = made[1];
    Tensors inputs = {in.back(), in[0], inverse, inverse};
    if (how.attributes().has_mean()) inputs[3] = made[2];
    if (how.scales > 0) inputs.push_back(in[1]);
    return wanted_of(op, inputs, how.attributes(), wanted);
  };
  // Only gradient rules call it, on nodes whose shapes were checked.
  return moving_sample(op, how.op->name + (how.name + (", wanted " + std::to_string(wanted))),
                       given, call, true);
}

// Channel of each element of x, and the index of its mean.
struct Places {
  std::vector<std::int64_t> channel, statistic;
  std::int64_t channels = 1, statistics = 1;

  Places(const Shape& x, const NormAttributes& attributes) {
    const int rank = x.rank(), number = attributes.number;
    const bool is_group = attributes.kind == NormAttributes::group,
               is_batch = attributes.kind == NormAttributes::batch;
    if (is_batch) channels = statistics = x[number];
    if (is_group) {
      channels = x[1];
      statistics = x[0] * number;
    }
    if (!is_group && !is_batch)
      for (int axis = 0; axis < rank; ++axis)
        (axis < rank - number ? statistics : channels) *= x[axis];
    for_each_index(x, [&](const Index& index) {
      if (is_batch || is_group) {
        const std::int64_t c = index[static_cast<std::size_t>(is_batch ? number : 1)];
        channel.push_back(c);
        statistic.push_back(is_batch ? c : index[0] * number + c / (channels / number));
      } else {
        const auto next = static_cast<std::int64_t>(channel.size());
        channel.push_back(next % channels);
        statistic.push_back(next / channels);
      }
    });
  }
};

struct Normal {
  std::vector<double> mean, variance, inverse, n;
  Places at;
  double terms = 0;

  Normal(const Array& x, const NormAttributes& attributes) : at(x.shape, attributes) {
    const auto count = static_cast<std::size_t>(at.statistics);
    mean.assign(count, 0);
    variance.assign(count, 0);
    terms = static_cast<double>(x.elements()) / static_cast<double>(at.statistics);
    const auto of = [&](std::int64_t i) { return place(at.statistic, i); };
    for (std::int64_t i = 0; i < x.elements(); ++i) mean[of(i)] += x[i] / terms;
    if (attributes.kind == NormAttributes::rms) mean.assign(count, 0);
    for (std::int64_t i = 0; i < x.elements(); ++i)
      variance[of(i)] += (x[i] - mean[of(i)]) * (x[i] - mean[of(i)]) / terms;
    for (double v : variance)
      inverse.push_back(x.elements() == 0 ? std::nan("") : 1 / std::sqrt(v + attributes.epsilon));
    if (x.elements() == 0) mean.assign(count, std::nan(""));
    for (std::int64_t i = 0; i < x.elements(); ++i)
      n.push_back((x[i] - mean[of(i)]) * inverse[of(i)]);
  }
  static std::size_t place(const std::vector<std::int64_t>& places, std::int64_t i) {
    return static_cast<std::size_t>(places[static_cast<std::size_t>(i)]);
  }
  std::int64_t channel(std::int64_t i) const { return at.channel[static_cast<std::size_t>(i)]; }
};

Array scaled(const Application& a, const Normal& normal) {
  const auto& attributes = a.attribute<NormAttributes>();
  Array y(a[0].shape);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t c = normal.channel(i);
    y[i] = normal.n[static_cast<std::size_t>(i)] * (attributes.has_scale ? a[1][c] : 1) +
           (attributes.has_shift ? a[2][c] : 0);
  }
  return y;
}

// The first output; the statistics that the gradient keeps are not compared.
Arrays norm(const Application& a) {
  const Normal normal(a[0], a.attribute<NormAttributes>());
  return {scaled(a, normal)};
}

Arrays batch_norm(const Application& a) {
  const Normal normal(a[0], a.attribute<NormAttributes>());
  const double share = normal.terms == 0 ? 0 : a.attribute<NormAttributes>().momentum;
  Array mean = a[3], variance = a[4];
  for (std::size_t c = 0; share > 0 && c < mean.values.size(); ++c) {
    const double population = normal.variance[c] * normal.terms / (normal.terms - 1);
    mean.values[c] += share * (normal.mean[c] - mean.values[c]);
    variance.values[c] += share * (population - variance.values[c]);
  }
  return {scaled(a, normal), mean, variance};
}

Arrays norm_backward(const Application& a) {
  const auto& attributes = a.attribute<NormAttributes>();
  const Array &dy = a[0], &x = a[1];
  const Normal normal(x, attributes);
  Array dx(x.shape), d_scale(a.outputs[1].shape), d_shift(a.outputs[2].shape);
  std::vector<double> of_mean(normal.mean.size()), of_size(normal.mean.size());
  const auto gradient = [&](std::int64_t i) {
    return dy[i] * (attributes.has_scale ? a[4][normal.channel(i)] : 1);
  };
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double n = normal.n[static_cast<std::size_t>(i)];
    d_scale[normal.channel(i)] += dy[i] * n;
    d_shift[normal.channel(i)] += dy[i];
    const std::size_t k = Normal::place(normal.at.statistic, i);
    of_mean[k] += gradient(i) / normal.terms;
    of_size[k] += gradient(i) * n / normal.terms;
  }
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::size_t k = Normal::place(normal.at.statistic, i);
    dx[i] = (gradient(i) - (attributes.has_mean() ? of_mean[k] : 0) -
             normal.n[static_cast<std::size_t>(i)] * of_size[k]) *
            normal.inverse[k];
  }
  return {dx, d_scale, d_shift};
}

Arrays inference(const Application& a) {
  const auto& attributes = a.attribute<NormAttributes>();
  const Places at(a[0].shape, attributes);
  Array y(a[0].shape);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t c = at.channel[static_cast<std::size_t>(i)];
    y[i] = (a[0][i] - a[1][c]) / std::sqrt(a[2][c] + attributes.epsilon) * a[3][c] + a[4][c];
  }
  return {y};
}

}  // namespace

void norm_family(std::vector<Sample>& samples, References& references, DType dtype) {
  using enum NormAttributes::Kind;
  const How all[] = {
      {"", &layer_norm_op, layer, 1, {kOpen, 5}, {5}},
      {"of wide rows", &layer_norm_op, layer, 1, {kOpen, 70}, {70}},
      {"without scale", &layer_norm_op, layer, 1, {kOpen, 2, 4}, {4}, 0},
      {"over two axes", &layer_norm_op, layer, 2, {kOpen, 3, 4}, {3, 4}},
      {"", &rms_norm_op, rms, 1, {2, kOpen, 5}, {5}, 1},
      {"without scale", &rms_norm_op, rms, 2, {kOpen, 2, 4}, {2, 4}, 0},
      {"", &group_norm_op, group, 2, {kOpen, 4, 3}, {4}},
      {"of images", &group_norm_op, group, 3, {kOpen, 6, 2, 9}, {6}},
      {"of single features", &group_norm_op, group, 2, {kOpen, 6}, {6}},
      {"", &batch_norm_op, batch, 1, {kOpen, 3, 4}, {3}},
      {"of images", &batch_norm_op, batch, 1, {kOpen, 2, 3, 7}, {2}},
      {"with channels last", &batch_norm_op, batch, 2, {kOpen, 2, 70}, {70}},
  };
  for (const How& how : all) {
    samples.push_back(of_any_shape(*how.op, how.name, how.inputs(), EBB_CALL(how.run(in)[0])));
    for (unsigned wanted = 1; wanted < (how.scales > 1   ? 8
                                        : how.scales > 0 ? 4
                                                         : 2);
         wanted += is_half(dtype) ? 2 : 1)
      samples.push_back(backward(how, wanted));
  }
  const DType statistics = dtype == DType::f64 ? dtype : DType::f32;
  for (const int axis : {1, 2})
    samples.push_back(of_any_shape(batch_norm_inference_op, "axis " + std::to_string(axis),
                                   {{{kOpen, 3, 3}}, {{3}}, {{3}, Values::positive}, {{3}}, {{3}}},
                                   EBB_CALL(batch_norm(in[0], in[3], in[4], cast(in[1], statistics),
                                                       cast(in[2], statistics), {.axis = axis}))));

  for (const OpDef* op : {&layer_norm_op, &rms_norm_op, &group_norm_op}) references.add(*op, norm);
  references.add(batch_norm_op, batch_norm);
  for (const OpDef* op : {&norm_backward_op, &batch_norm_backward_op})
    references.add(*op, norm_backward);
  references.add(batch_norm_inference_op, inference);
}

}  // namespace ebb::tests
