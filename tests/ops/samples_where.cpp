#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/where.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// Reference for two tensors, and for a number in place of either.
Arrays chosen(const Application& x) {
  const auto& number = x.attribute<NumberOperand>();
  Array value(Shape{});
  value[0] = number.value;
  const Array& a = number.position == NumberOperand::left ? value : x[1];
  const Array& b = number.position == NumberOperand::left    ? x[1]
                   : number.position == NumberOperand::right ? value
                                                             : x[2];
  Array out(broadcast(broadcast(x[0].shape, a.shape), b.shape));
  std::int64_t next = 0;
  for_each_index(out.shape, [&](const Index& index) {
    out[next++] = x[0][position(x[0].shape, index)] != 0 ? a[position(a.shape, index)]
                                                         : b[position(b.shape, index)];
  });
  return {out};
}

}  // namespace

void where_family(std::vector<Sample>& samples, References&, DType) {
  using enum Values;
  const auto add = [&](const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                       std::function<Tensors(const Tensors&)> call) {
    samples.push_back(moving_sample(op, how, std::move(inputs), std::move(call), true));
    samples.back().reference = chosen;
    const SampleInput& last = samples.back().inputs.back();
    if (last.dtype || last.values == flags) samples.back().order = 0;
  };
  const auto three = [&](const std::string& how, const Shape& condition, const SampleInput& a,
                         const SampleInput& b) {
    add(where_op.tensors, how, {{condition, flags}, a, b}, EBB_CALL(where(in[0], in[1], in[2])));
  };
  three("one shape", {kOpen, 3}, {{kOpen, 3}}, {{kOpen, 3}});
  three("a row of conditions", {3}, {{kOpen, 3}}, {{kOpen, 3}});
  three("all of them broadcast", {kOpen, 1, 1}, {{4, 1}}, {{5}});
  three("two scalars", {kOpen, 2}, {{}}, {{}});
  three("one condition", {}, {{kOpen, 2}}, {{2}});
  three("a column of conditions", {kOpen, 1}, {{kOpen, 5}}, {{5}});
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    three(name(dtype), {kOpen, 1}, {{kOpen, 3}, labels, dtype}, {{3}, labels, dtype});
  three("bool", {kOpen, 3}, {{kOpen, 3}, flags}, {{3}, flags});

  const auto two = [&](const std::string& how, const Shape& condition, const SampleInput& x,
                       double number) {
    add(where_op.number_right, how + ", else a number", {{condition, flags}, x},
        EBB_CALL(where(in[0], in[1], number)));
    add(where_op.number_left, how + ", a number else", {{condition, flags}, x},
        EBB_CALL(where(in[0], number, in[1])));
  };
  two("one shape", {kOpen, 3}, {{kOpen, 3}}, 0.5);
  two("both broadcast", {kOpen, 1}, {{3}}, -0.25);
  two("i64", {kOpen}, {{kOpen}, labels, DType::i64}, 7);
  two("bool", {kOpen}, {{kOpen}, flags}, 1);

  add(masked_fill_op, "one shape", {{{kOpen, 3}, flags}, {{kOpen, 3}}},
      EBB_CALL(masked_fill(in[1], in[0], -1.5)));
  add(masked_fill_op, "a column of masks", {{{kOpen, 1}, flags}, {{2, kOpen, 5}}},
      EBB_CALL(masked_fill(in[1], in[0], 2)));
}

}  // namespace ebb::tests
