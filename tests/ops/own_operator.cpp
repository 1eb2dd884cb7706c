// A user's operator from outside the library, as docs/guide/own.md shows it.
#include "ebb/core/autodiff/check_gradient.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"

namespace {

using namespace ebb;

struct RunningSum {
  std::int64_t from_the_end = 0;
};

template <class T>
void add_up(const Buffer& x, const Buffer& y, bool from_the_end) {
  const std::int64_t count = x.elements();
  T sum = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t i = from_the_end ? count - 1 - k : k;
    y.as<T>()[i] = sum += x.as<const T>()[i];
  }
}

Status run_running_sum(const KernelContext& c) {
  const bool from_the_end = c.attribute<RunningSum>().from_the_end != 0;
  if (c.inputs[0].spec.dtype == DType::f32)
    add_up<float>(c.inputs[0], c.outputs[0], from_the_end);
  else
    add_up<double>(c.inputs[0], c.outputs[0], from_the_end);
  return {};
}

Tensor running_sum(const Tensor& x, RunningSum how = {}, CallSite site = CallSite::here());

constinit const OpDef running_sum_op{
    .name = "running_sum",
    .infer =
        [](Inference& i) {
          const Spec& x = i.inputs[0];
          i.require(x.shape.rank() == 1 && (x.dtype == DType::f32 || x.dtype == DType::f64),
                    "takes one axis of f32 or f64");
          i.output(x.dtype, x.shape);
        },
    .gradient = [](const GradientContext& g) -> Tensors {
      return {running_sum(g.dy(), {1 - g.attribute<RunningSum>().from_the_end})};
    },
    .takes_over = bit(0),
    .cpu = {run_running_sum},
    .cuda = tests::copied<run_running_sum>};

Tensor running_sum(const Tensor& x, RunningSum how, CallSite site) {
  return apply_one(running_sum_op, {x}, how, site);
}

}  // namespace

TEST_CASE("An operator of one's own runs in both modes, with gradients of two orders") {
  const Tensor x = Tensor::from({1.0, 2.0, 4.0});
  const std::vector<double> expected = {1, 3, 7};
  CHECK(running_sum(x).to_vector<double>() == expected);
  CHECK(check_gradient([](const Tensors& in) { return square(running_sum(in[0])); }, {x},
                       {.order = 2}));

  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f64, {-1});
  const Tensor y = running_sum(fed);
  Session session(graph);
  CHECK(session.run(y, {{fed, x}}).to_vector<double>() == expected);
  CHECK_ERROR(running_sum(Tensor::zeros({2, 2})), ShapeError,
              "[running_sum] takes one axis of f32 or f64; the input is f32[2, 2]");
}
