#include "ebb/optim/accumulator.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/random/random.h"
#include "ebb/optim/detail/accumulation.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::optim {

void require_options(const AccumulatorOptions& options) {
  if (options.samples < 1)
    fail("accumulator", "samples = " + std::to_string(options.samples) + " is below 1");
  require_state_dtype("accumulator", "sum_dtype", options.sum_dtype);
}

Accumulator::Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options,
                         CallSite site)
    : optimizer_(optimizer), options_(options) {
  const ebb::detail::CallSiteScope at(site);
  require_options(options);
}

Tensor Accumulator::minimize(const Tensor& loss, const Parameters& parameters,
                             const Tensor& samples, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return accumulate(loss, {{{parameters, optimizer_}}, "parameter"}, options_, samples);
}

Tensor Accumulator::flush(const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return flush_accumulated({{{parameters, optimizer_}}, "parameter"}, options_);
}

constinit const OpDef accumulate_op{
    .name = "accumulate",
    .infer =
        [](Inference& inference) {
          const Spec &sum = inference.inputs[0], &gradient = inference.inputs[1];
          if (!is_floating(sum.dtype) || is_half(sum.dtype))
            inference.fail("takes sums of f32 or f64");
          if (!is_floating(gradient.dtype)) inference.fail(ebb::detail::kTakesFloating);
          if (is_half(gradient.dtype) && sum.dtype != DType::f32)
            inference.fail("takes f32 sums of gradients of 16 bits");
          inference.require(ebb::detail::may_equal(sum.shape, gradient.shape),
                            "takes tensors of one shape");
          ebb::detail::require_scalar(inference, 2, DType::i64, "rows");
          ebb::detail::output_like_first(inference);
        },
    .updates = bit(0),
    .stateful = true,
    .cpu = {cpu::accumulate},
    .cuda = {.run = cuda::accumulate, .run_merged = cuda::accumulate_merged}};

}  // namespace ebb::optim
