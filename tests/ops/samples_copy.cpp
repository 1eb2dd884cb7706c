#include <cmath>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Arrays same(const Application& a) { return {a[0]}; }

double converted(double x, DType to) {
  if (is_floating(to)) return x;
  return to == DType::boolean ? (x != 0 ? 1 : 0) : std::trunc(x);
}

Arrays converted_to_output(const Application& a) {
  const DType to = a.outputs[0].dtype;
  return {map(a[0], [=](double x) { return converted(x, to); })};
}

}  // namespace

void add_copy_samples(std::vector<Sample>& samples) {
  samples.push_back({.op = &fill_like_op,
                     .name = "fill_like",
                     .inputs = {{{kOpen, 3}}},
                     .call = EBB_CALL(fill_like(in[0], 7)),
                     .order = 0,
                     .any_dtype = true,
                     .any_shape = true,
                     .reference = [](const Application& a) -> Arrays {
                       const double n = a.attribute<FillAttributes>().value;
                       return {map(a[0], [=](double) { return n; })};
                     }});
  samples.push_back({.op = &copy_op,
                     .name = "copy",
                     .inputs = {{{kOpen, 3}}},
                     .call = EBB_CALL(copy(in[0])),
                     .any_dtype = true,
                     .any_shape = true,
                     .reference = same});
  // No operator in eager mode: only the handle changes.
  samples.push_back({.op = &detach_op,
                     .name = "detach",
                     .inputs = {{{kOpen, 3}}},
                     .call = EBB_CALL(in[0].detach()),
                     .order = 0,
                     .any_dtype = true,
                     .any_shape = true,
                     .reference = same});
  samples.push_back({.op = &cast_op,
                     .name = "cast to i32",
                     .inputs = {{{kOpen, 3}}},
                     .call = EBB_CALL(cast(in[0], DType::i32)),
                     .order = 0,
                     .any_dtype = true,
                     .any_shape = true,
                     .reference = converted_to_output});
  // The gradient is too coarse for differences; tests/ops/values.cpp checks it.
  const auto add = [&](const char* how, Tensor (*call)(const Tensor&)) {
    samples.push_back({.op = &cast_op,
                       .name = std::string("cast ") + how,
                       .inputs = {{{kOpen, 3}}},
                       .call = EBB_CALL(call(in[0])),
                       .order = 0,
                       .any_dtype = true,
                       .any_shape = true,
                       .reference = converted_to_output});
  };
  add("between f32 and f64",
      [](const Tensor& x) { return cast(x, x.dtype() == DType::f32 ? DType::f64 : DType::f32); });
  add("to 16 bits",
      [](const Tensor& x) { return cast(x, x.dtype() == DType::bf16 ? DType::f16 : DType::bf16); });
}

}  // namespace ebb::tests
