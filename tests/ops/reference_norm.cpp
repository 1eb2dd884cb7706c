#include <cmath>

#include "ebb/core/kernels/norm.h"
#include "ebb/core/ops/norm.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// The channel of each element of x, and which mean it is in.
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

// What the gradient keeps beside is left out here.
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

Arrays backward(const Application& a) {
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

void add_norm_references(std::vector<Reference>& references) {
  for (const OpDef* op : {&layer_norm_op, &rms_norm_op, &group_norm_op})
    references.push_back({op, norm});
  references.push_back({&batch_norm_op, batch_norm});
  for (const OpDef* op : {&norm_backward_op, &batch_norm_backward_op})
    references.push_back({op, backward});
  references.push_back({&batch_norm_inference_op, inference});
}

}  // namespace ebb::tests
