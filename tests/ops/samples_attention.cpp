#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// A mask is the last input. An integer mask is cast to bool: keys count where it is not 0.
Tensor run(const Tensors& in, bool causal) {
  AttentionOptions options{.causal = causal};
  if (in.size() == 4)
    options.mask = is_floating(in[3].dtype()) ? in[3] : cast(in[3], DType::boolean);
  return scaled_dot_product_attention(in[0], in[1], in[2], options);
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Flat position of (row, column) in the matrix of the batch that index `of` belongs to.
std::int64_t place(const Shape& shape, Index of, std::int64_t row, std::int64_t column) {
  of[of.size() - 2] = row;
  of[of.size() - 1] = column;
  return position(shape, of);
}

double dot(const Array& a, const Array& b, const Index& at, std::int64_t row, std::int64_t line) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.shape[-1]; ++i)
    sum += a[place(a.shape, at, row, i)] * b[place(b.shape, at, line, i)];
  return sum;
}

// Whether a mask is bool, judged by its values: random numbers are never all 0 or 1.
bool counts_keys(const Array& mask) {
  return std::all_of(mask.values.begin(), mask.values.end(),
                     [](double value) { return value == 0 || value == 1; });
}

// Probabilities [..., length, keys]; zeros for a query without keys.
Array probabilities(const Application& a, std::size_t mask) {
  const auto& attributes = a.attribute<AttentionAttributes>();
  Shape shape = a[0].shape;
  shape.set(-1, a[1].shape[-2]);
  Array p(shape);
  if (p.elements() == 0) return p;
  const bool is_bool = attributes.mask != 0 && counts_keys(a[mask]);
  Shape rows = shape;
  rows.set(-1, 1);
  for_each_index(rows, [&](const Index& at) {
    const std::int64_t i = at[at.size() - 2], keys = shape[-1];
    double largest = kNever, sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = p[place(shape, at, i, j)];
      score = attributes.scale * dot(a[0], a[1], at, i, j);
      if (attributes.mask != 0) {
        Index of = at;
        of[of.size() - 1] = j;
        const double value = a[mask][position(a[mask].shape, of)];
        if (is_bool) {
          if (value == 0) score = kNever;
        } else {
          score += value;
        }
      }
      if (attributes.causal != 0 && j > i) score = kNever;
      largest = std::max(largest, score);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = p[place(shape, at, i, j)];
      score = score == kNever ? 0 : std::exp(score - largest);
      sum += score;
    }
    for (std::int64_t j = 0; j < keys && sum > 0; ++j) p[place(shape, at, i, j)] /= sum;
  });
  return p;
}

Arrays backward(const Application& a) {
  const auto& attributes = a.attribute<AttentionAttributes>();
  const Array p = probabilities(a, kAttentionMask);
  const Array &q = a[kAttentionQ], &k = a[kAttentionK], &v = a[kAttentionV], &dy = a[kAttentionDy];
  Array dq(q.shape), dk(k.shape), dv(v.shape);
  double mean = 0;  // of dot(dy, v) over the row, weighted by p
  for_each_index(p.shape, [&](const Index& at) {
    const std::int64_t i = at[at.size() - 2], j = at[at.size() - 1];
    if (j == 0) mean = 0;
    for (std::int64_t l = 0; j == 0 && l < p.shape[-1]; ++l)
      mean += p[place(p.shape, at, i, l)] * dot(dy, v, at, i, l);
    const double own = p[position(p.shape, at)];
    const double ds = own * (dot(dy, v, at, i, j) - mean) * attributes.scale;
    for (std::int64_t l = 0; l < q.shape[-1]; ++l) {
      dq[place(q.shape, at, i, l)] += ds * k[place(k.shape, at, j, l)];
      dk[place(k.shape, at, j, l)] += ds * q[place(q.shape, at, i, l)];
    }
    for (std::int64_t l = 0; l < v.shape[-1]; ++l)
      dv[place(v.shape, at, j, l)] += own * dy[place(dy.shape, at, i, l)];
  });
  return {dq, dk, dv};
}

}  // namespace

void attention_family(std::vector<Sample>& samples, References& references, DType dtype) {
  const auto add = [&](const char* how, const std::vector<SampleInput>& inputs, bool causal) {
    samples.push_back(of_any_shape(attention_op, how, inputs, EBB_CALL(run(in, causal))));
    samples.back().largest_batch = 100;
    const auto backward = [causal](const Tensors& in) {
      Tensors values = in, wanted;
      for (std::size_t i = 0; i < 3; ++i) {
        if (!values[i].is_symbolic()) values[i] = values[i].with_grad();
        wanted.push_back(values[i]);
      }
      return gradients(sum(square(run(values, causal))), wanted);
    };
    samples.push_back(moving_sample(attention_backward_op, how, inputs, backward, true));
    samples.back().order = kNoGradient;
    samples.back().largest_batch = 100;
  };
  add("one head", {{{kOpen, 3, 4}}, {{kOpen, 5, 4}}, {{kOpen, 5, 2}}}, false);
  add("causal", {{{2, kOpen, 3}}, {{2, kOpen, 3}}, {{2, kOpen, 4}}}, true);
  add("a bool mask",
      {{{kOpen, 2, 3, 2}},
       {{kOpen, 2, 4, 2}},
       {{kOpen, 2, 4, 2}},
       {{kOpen, 1, 1, 4}, Values::labels}},
      false);
  if (!is_half(dtype))
    add("a mask that is added, causal",
        {{{kOpen, 2, 3, 2}}, {{kOpen, 2, 4, 2}}, {{kOpen, 2, 4, 2}}, {{2, 1, 4}}}, true);
  samples.push_back(
      of_any_shape(causal_bias_op, "", {{{kOpen, 2, 4}}}, applying(causal_bias_op), kNoGradient));

  references.add(attention_op, [](const Application& a) -> Arrays {
    const Array p = probabilities(a, 3);
    Array y(a.outputs[0].shape);
    for_each_index(y.shape, [&](const Index& at) {
      const std::int64_t i = at[at.size() - 2];
      for (std::int64_t j = 0; j < p.shape[-1]; ++j)
        y[position(y.shape, at)] +=
            p[place(p.shape, at, i, j)] * a[2][place(a[2].shape, at, j, at[at.size() - 1])];
    });
    return {y};
  });
  references.all.back().roundings = 2;  // a GPU's tensor cores take probabilities of 16 bits
  references.add(attention_backward_op, backward).roundings =
      4;  // its input y has already been rounded once
  references.add(causal_bias_op, [](const Application& a) -> Arrays {
    Array out(a.outputs[0].shape);
    for_each_index(out.shape, [&](const Index& at) {
      out[position(out.shape, at)] = at[1] <= at[0] ? 0 : kNever;
    });
    return {out};
  });
}

}  // namespace ebb::tests
