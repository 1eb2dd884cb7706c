#include "ebb/core/kernels/index.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Call = std::function<Tensor(const Tensors&)>;

Sample sample(const OpDef& op, const char* how, std::vector<SampleInput> inputs, Call call) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = std::move(inputs),
          .call = [call = std::move(call)](const Tensors& in) -> Tensors { return {call(in)}; },
          .any_shape = true};
}

}  // namespace

void add_index_samples(std::vector<Sample>& samples) {
  using enum Values;
  const auto add = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(sample(index_select_op, how, std::move(inputs), [axis](const Tensors& in) {
      return index_select(in[0], in[1], axis);
    }));
    samples.back().any_dtype = true;
  };
  add("rows", {{{5, 3}}, {{kOpen}, labels}}, 0);
  add("a middle axis", {{{2, 5, 3}}, {{kOpen}, long_labels}}, 1);
  add("the last axis of a batch", {{{kOpen, 6}}, {{4}, labels}}, -1);
  add("by a matrix", {{{5, 2}}, {{kOpen, 3}, long_labels}}, 0);
  add("by one number", {{{6, 2}}, {{}, labels}}, 0);

  const auto backward = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis) {
    samples.push_back(
        sample(index_select_backward_op, how, std::move(inputs), [axis](const Tensors& in) {
          return apply_one(index_select_backward_op, {in[0], in[1], in[2]}, IndexAttributes{axis},
                           {});
        }));
    samples.back().any_shape = false;
  };
  backward("rows", {{{kOpen, 3}}, {{kOpen}, labels}, {{6, 3}}}, 0);
  backward("a middle axis", {{{2, kOpen, 3}}, {{kOpen}, long_labels}, {{2, 5, 3}}}, 1);
  backward("one axis", {{{kOpen}}, {{kOpen}, long_labels}, {{7}}}, 0);
  backward("of a batch", {{{kOpen, 4}}, {{4}, labels}, {{kOpen, 6}}}, 1);

  const auto gathered = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(sample(gather_op, how, std::move(inputs),
                             [axis](const Tensors& in) { return gather(in[0], axis, in[1]); }));
    samples.back().any_dtype = true;
    samples.back().any_shape = false;
  };
  gathered("rows", {{{kOpen, 6}}, {{kOpen, 3}, labels}}, -1);
  gathered("the first axis", {{{5, 2}}, {{kOpen, 2}, long_labels}}, 0);
  gathered("a middle axis", {{{2, 5, kOpen}}, {{2, 3, kOpen}, long_labels}}, 1);
  const auto scattered = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis) {
    samples.push_back(sample(gather_backward_op, how, std::move(inputs), [axis](const Tensors& in) {
      return apply_one(gather_backward_op, {in[0], in[1], in[2]}, IndexAttributes{axis}, {});
    }));
    samples.back().any_shape = false;
  };
  scattered("rows", {{{kOpen, 4}}, {{kOpen, 4}, labels}, {{kOpen, 6}}}, 1);
  scattered("the first axis", {{{kOpen, 2}}, {{kOpen, 2}, long_labels}, {{5, 2}}}, 0);
  scattered("a middle axis", {{{2, 7, kOpen}}, {{2, 7, kOpen}, labels}, {{2, 5, kOpen}}}, 1);

  for (const Values kind : {labels, long_labels}) {
    samples.push_back(sample(one_hot_op, kind == labels ? "a batch" : "i64", {{{kOpen}, kind}},
                             [](const Tensors& in) { return one_hot(in[0], 4); }));
    samples.back().order = 0;
  }
}

}  // namespace ebb::tests
