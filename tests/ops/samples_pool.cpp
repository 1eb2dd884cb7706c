#include "ebb/core/kernels/pool.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Sample sample(const OpDef& op, const char* how, std::vector<SampleInput> inputs,
              const PoolAttributes& attributes) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = std::move(inputs),
          .call =
              [&op, attributes](const Tensors& in) {
                const InlineVector<Input, 2> given(in.begin(), in.end());
                return apply(op, {given.data(), given.size()}, attributes, {});
              },
          .any_shape = op.infer == avg_pool_op.infer};
}

}  // namespace

void add_pool_samples(std::vector<Sample>& samples) {
  const auto add = [&](const char* how, const Shape& x, const Shape& y,
                       const PoolAttributes& attributes) {
    samples.push_back(sample(max_pool_op, how, {{x}}, attributes));
    samples.push_back(sample(max_pool_select_op, how, {{x}, {x}}, attributes));
    samples.push_back(sample(max_pool_backward_op, how, {{y}, {x}}, attributes));
    for (const std::int64_t count_include_pad : {1, 0}) {
      PoolAttributes means = attributes;
      means.count_include_pad = count_include_pad;
      const std::string name = std::string(how) + (count_include_pad == 1 ? "" : ", without pad");
      samples.push_back(sample(avg_pool_op, name.c_str(), {{x}}, means));
      samples.push_back(sample(avg_pool_backward_op, name.c_str(), {{y}, {x}}, means));
    }
  };
  add("apart", {kOpen, 2, 4, 5}, {kOpen, 2, 2, 2}, {.kernel = {2, 2}, .stride = {2, 2}});
  add("overlapping, padded", {2, kOpen, 4, 3}, {2, kOpen, 2, 4},
      {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  samples.push_back({.op = &max_pool_op,
                     .name = "max_pool1d",
                     .inputs = {{{kOpen, 6}}},
                     .call = [](const Tensors& in) -> Tensors {
                       return {max_pool1d(in[0], {.kernel = 3, .stride = 2, .padding = 1})};
                     },
                     .any_shape = true});
  samples.push_back({.op = &avg_pool_op,
                     .name = "avg_pool1d",
                     .inputs = {{{kOpen, 6}}},
                     .call = [](const Tensors& in) -> Tensors { return {avg_pool1d(in[0])}; },
                     .any_shape = true});
}

}  // namespace ebb::tests
