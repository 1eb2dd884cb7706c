#include <cmath>
#include <numbers>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/random.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// Uniform number in [0, 1) of element i of a draw.
double unit(const Array& draw, std::int64_t i) {
  const std::uint32_t word =
      Philox::word(static_cast<std::uint64_t>(draw[0]), static_cast<std::uint64_t>(draw[1]),
                   static_cast<std::uint64_t>(i));
  return static_cast<double>(word >> 8) / 16'777'216;  // its upper 24 bits
}

// Reference of a creation operator: each element follows from the draw, its index and the
// attributes.
std::function<Arrays(const Application&)> creation(double (*element)(const Array& draw,
                                                                     std::int64_t i,
                                                                     const RandomAttributes&)) {
  return [element](const Application& a) -> Arrays {
    Array out(a.inputs.size() > 1 ? a[1].shape : a.outputs[0].shape);  // like, if given
    for (std::int64_t i = 0; i < out.elements(); ++i)
      out[i] = element(a[0], i, a.attribute<RandomAttributes>());
    return {out};
  };
}

double uniform_element(const Array& draw, std::int64_t i, const RandomAttributes& bounds) {
  return bounds.a + (bounds.b - bounds.a) * unit(draw, i);
}

double bernoulli_element(const Array& draw, std::int64_t i, const RandomAttributes& of) {
  return unit(draw, i) < of.a ? 1 : 0;
}

// Box-Muller transform: two words give two normal numbers.
double normal_element(const Array& draw, std::int64_t i, const RandomAttributes& attributes) {
  const std::int64_t pair = i - i % 2;
  const double radius = std::sqrt(-2 * std::log(1 - unit(draw, pair)));
  const double angle = 2 * std::numbers::pi * unit(draw, pair + 1);
  return attributes.a + attributes.b * radius * (i % 2 ? std::sin(angle) : std::cos(angle));
}

}  // namespace

void random_family(std::vector<Sample>& samples, References& references, DType dtype) {
  const SampleInput kDraw{{2}, Values::draw};
  const struct {
    const OpDef& op;
    double a, b;
  } creations[] = {{uniform_op, -1, 3}, {normal_op, 1, 2}, {bernoulli_op, 0.3, 1}};
  for (const auto& [op, a, b] : creations)
    for (const std::int64_t size : {0, 1, 7})
      samples.push_back(sample_of(op, std::to_string(size) + " rows", {kDraw},
                                  applying(op, detail::creation_attributes(a, b, {size, 3}, dtype)),
                                  kNoGradient));

  for (const DType of : {DType::i32, DType::i64, DType::u8})
    for (const std::int64_t size : {0, 1, 7})
      samples.push_back(sample_of(
          randint_op, name(of) + (", " + std::to_string(size)) + " rows", {kDraw},
          applying(randint_op, detail::randint_attributes(3, 9, {size, 5}, of, {})), kNoGradient));

  for (const auto& [op, a, b] : creations)
    samples.push_back(of_any_shape(op, "like another", {kDraw, {{kOpen, 5}}},
                                   applying(op, RandomAttributes{a, b}), kNoGradient));

  samples.push_back(of_any_shape(dropout_op, "", {{{kOpen, 6}}, kDraw},
                                 applying(dropout_op, RandomAttributes{.a = 0.4})));
  samples.push_back(
      sample_of(draw_op, "", {kDraw}, applying(draw_op, DrawAttributes{.node = 9}), kNoGradient));
  samples.push_back(sample_of(next_run_op, "", {kDraw}, applying(next_run_op), kNoGradient));
  for (const std::int64_t size : {0, 1, 7})
    samples.push_back(sample_of(full_op, std::to_string(size) + " rows", {},
                                EBB_CALL(Tensor::full({size, 3}, 1.5, dtype)), kNoGradient));

  // It rounds down beside the open end.
  references.add(uniform_op, creation(uniform_element)).roundings = 2;
  references.add(normal_op, creation(normal_element));
  references.add(bernoulli_op, creation(bernoulli_element));
  references.add(dropout_op, [](const Application& a) -> Arrays {
    const double probability = a.attribute<RandomAttributes>().a;
    Array y = a[0];
    for (std::int64_t i = 0; i < y.elements(); ++i)
      y[i] = unit(a[1], i) < probability ? 0 : y[i] / (1 - probability);
    return {y};
  });
  references.add(randint_op, [](const Application& a) -> Arrays {
    const auto& told = a.attribute<RandintAttributes>();
    Array out(a.outputs[0].shape);
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const std::uint32_t word =
          Philox::word(static_cast<std::uint64_t>(a[0][0]), static_cast<std::uint64_t>(a[0][1]),
                       static_cast<std::uint64_t>(i));
      out[i] = static_cast<double>(told.low) +
               std::floor(word / 0x1p32 * static_cast<double>(told.count));
    }
    return {out};
  });
  references.add(draw_op, [](const Application& a) -> Arrays {
    const auto& attributes = a.attribute<DrawAttributes>();
    Array out({2});  // the session's key; its run count and the node
    out[0] = a[0][0];
    out[1] = a[0][1] * 0x1p32 + static_cast<double>(attributes.node);
    return {out};
  });
  references.add(next_run_op, [](const Application& a) -> Arrays {
    Array state = a[0];
    state[1] += 1;
    return {state};
  });
  references.add(full_op, [](const Application& a) -> Arrays {
    Array out(a.outputs[0].shape);
    for (double& value : out.values) value = 1.5;
    return {out};
  });
}

}  // namespace ebb::tests
