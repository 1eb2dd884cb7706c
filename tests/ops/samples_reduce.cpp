#include "ebb/core/ops/reduce.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_reduce_samples(std::vector<Sample>& samples) {
  const struct {
    const OpDef& op;
    Tensor (*call)(const Operand&, const ReduceOptions&);
  } reductions[] = {{sum_op, sum}, {mean_op, mean}};
  for (const auto& kind : reductions) {
    const OpDef& op = kind.op;
    const auto add = [&, f = kind.call](const char* how, const Shape& shape,
                                        const ReduceOptions& options) {
      samples.push_back(
          {.op = &op,
           .name = std::string(op.name) + ", " + how,
           .inputs = {{shape}},
           .call = [f, options](const Tensors& in) -> Tensors { return {f(in[0], options)}; },
           .any_shape = true});
    };
    add("all", {kOpen, 3}, {});
    add("rows", {kOpen, 3}, {.axes = {0}});
    add("the last axis, kept", {2, kOpen, 3}, {.axes = {-1}, .keep = true});
    add("the middle axis", {kOpen, 4, 3}, {.axes = {1}});
    add("outer and inner axes", {2, kOpen, 3, 2}, {.axes = {0, 2}});
    add("a scalar", {}, {});
  }

  // sum takes every dtype; of what is not floating it is i64, and without a gradient.
  for (Sample& sample : samples)
    if (sample.op == &sum_op) sample.any_dtype = true;
  const auto add_whole = [&](const OpDef& op, auto call, const std::string& how,
                             const SampleInput& input, const ReduceOptions& options) {
    samples.push_back({.op = &op,
                       .name = std::string(op.name) + ", " + how,
                       .inputs = {input},
                       .call = [=](const Tensors& in) -> Tensors { return {call(in[0], options)}; },
                       .order = 0,
                       .any_dtype = &op == &sum_op,
                       .any_shape = true});
  };
  const auto add_every = [&](const OpDef& op, Tensor (*call)(const Operand&, const ReduceOptions&),
                             Values values, DType dtype) {
    const auto add = [&](const char* how, const Shape& shape, const ReduceOptions& options) {
      add_whole(op, call, std::string(how) + ", " + name(dtype), {shape, values, dtype}, options);
    };
    add("all of it", {kOpen, 3}, {});
    add("its rows", {kOpen, 2}, {.axes = {0}});
    add("along rows, kept", {2, kOpen, 3}, {.axes = {-1}, .keep = true});
    add("outer and inner", {2, kOpen, 3, 2}, {.axes = {0, 2}});
    add("an axis of 1", {kOpen, 1}, {.axes = {1}});
  };
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    add_every(sum_op, sum, Values::labels, dtype);
  add_every(sum_op, sum, Values::flags, DType::boolean);
  add_every(any_op, any, Values::flags, DType::boolean);
  add_every(all_op, all, Values::flags, DType::boolean);

  const auto add_like = [&](const char* how, const Shape& large, const Shape& small) {
    samples.push_back(
        {.op = &sum_like_op,
         .name = std::string("sum_like, ") + how,
         .inputs = {{large}, {small}},
         .call = [](const Tensors& in) -> Tensors { return {sum_like(in[0], in[1])}; },
         .any_shape = true});
    samples.push_back(
        {.op = &expand_as_op,
         .name = std::string("expand_as, ") + how,
         .inputs = {{small}, {large}},
         .call = [](const Tensors& in) -> Tensors { return {expand_as(in[0], in[1])}; },
         .any_dtype = true,
         .any_shape = true});
  };
  add_like("rows", {kOpen, 3}, {3});
  add_like("a column", {kOpen, 3}, {kOpen, 1});
  add_like("everything", {2, kOpen, 3}, {});
  add_like("two axes apart", {2, kOpen, 3}, {kOpen, 1});

  for (const bool mean : {false, true})
    for (const bool keep : {false, true}) {
      Shape small{3};
      if (keep) small = {1, 3};
      samples.push_back(
          {.op = &broadcast_like_op,
           .name = std::string("broadcast_like") + (mean ? ", mean" : "") + (keep ? ", kept" : ""),
           .inputs = {{small}, {{kOpen, 3}}},
           .call = [mean, keep](const Tensors& in) -> Tensors {
             return {detail::broadcast_like(in[0], in[1], {.axes = 1, .keep = keep, .mean = mean})};
           }});
    }
}

}  // namespace ebb::tests
