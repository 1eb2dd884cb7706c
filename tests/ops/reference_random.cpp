#include <cmath>
#include <numbers>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/random.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// The number in [0, 1) that element i of a draw has.
double unit(const Array& draw, std::int64_t i) {
  const std::uint32_t word =
      Philox::word(static_cast<std::uint64_t>(draw[0]), static_cast<std::uint64_t>(draw[1]),
                   static_cast<std::uint64_t>(i));
  return static_cast<double>(word >> 8) / 16'777'216;  // its upper 24 bits
}

// Each element from the draw, its own place and {a, b}.
Reference creation(const OpDef& op,
                   double (*element)(const Array& draw, std::int64_t i, const RandomAttributes&)) {
  return {&op, [element](const Application& a) -> Arrays {
            Array out(a.inputs.size() > 1 ? a[1].shape : a.outputs[0].shape);  // like, if given
            for (std::int64_t i = 0; i < out.elements(); ++i)
              out[i] = element(a[0], i, a.attribute<RandomAttributes>());
            return {out};
          }};
}

double uniform_element(const Array& draw, std::int64_t i, const RandomAttributes& bounds) {
  return bounds.a + (bounds.b - bounds.a) * unit(draw, i);
}

double bernoulli_element(const Array& draw, std::int64_t i, const RandomAttributes& of) {
  return unit(draw, i) < of.a ? 1 : 0;
}

// Box and Muller: two words make two numbers.
double normal_element(const Array& draw, std::int64_t i, const RandomAttributes& attributes) {
  const std::int64_t pair = i - i % 2;
  const double radius = std::sqrt(-2 * std::log(1 - unit(draw, pair)));
  const double angle = 2 * std::numbers::pi * unit(draw, pair + 1);
  return attributes.a + attributes.b * radius * (i % 2 ? std::sin(angle) : std::cos(angle));
}

}  // namespace

void add_random_references(std::vector<Reference>& references) {
  for (const OpDef* op : {&uniform_op, &uniform_like_op}) {
    references.push_back(creation(*op, uniform_element));
    references.back().roundings = 2;  // down, beside the open end
  }
  for (const OpDef* op : {&normal_op, &normal_like_op})
    references.push_back(creation(*op, normal_element));
  for (const OpDef* op : {&bernoulli_op, &bernoulli_like_op})
    references.push_back(creation(*op, bernoulli_element));
  references.push_back({&dropout_op, [](const Application& a) -> Arrays {
                          const double probability = a.attribute<RandomAttributes>().a;
                          Array y = a[0];
                          for (std::int64_t i = 0; i < y.elements(); ++i)
                            y[i] = unit(a[1], i) < probability ? 0 : y[i] / (1 - probability);
                          return {y};
                        }});
  references.push_back({&randint_op, [](const Application& a) -> Arrays {
                          const auto& told = a.attribute<RandintAttributes>();
                          Array out(a.outputs[0].shape);
                          for (std::int64_t i = 0; i < out.elements(); ++i) {
                            const std::uint32_t word = Philox::word(
                                static_cast<std::uint64_t>(a[0][0]),
                                static_cast<std::uint64_t>(a[0][1]), static_cast<std::uint64_t>(i));
                            out[i] = static_cast<double>(told.low) +
                                     std::floor(word / 0x1p32 * static_cast<double>(told.count));
                          }
                          return {out};
                        }});
  references.push_back({&draw_op, [](const Application& a) -> Arrays {
                          const auto& attributes = a.attribute<DrawAttributes>();
                          Array out({2});  // the session's key; its run count and the node
                          out[0] = a[0][0];
                          out[1] = a[0][1] * 0x1p32 + static_cast<double>(attributes.node);
                          return {out};
                        }});
  references.push_back({&next_run_op, [](const Application& a) -> Arrays {
                          Array state = a[0];
                          state[1] += 1;
                          return {state};
                        }});
  references.push_back({&full_op, [](const Application& a) -> Arrays {
                          Array out(a.outputs[0].shape);
                          for (double& value : out.values) value = 1.5;
                          return {out};
                        }});
}

}  // namespace ebb::tests
