#pragma once
#include <cstdint>

#include "ebb/core/ops/shape.h"
#include "ebb/examples/common/options.h"
#include "ebb/optim/accumulator.h"
#include "ebb/optim/adam.h"

namespace examples {

// Adam with a learning rate that falls along a cosine: one update per batch, whether it comes whole
// or in micro-batches.
class Updates {
 public:
  // For epochs of so many samples.
  Updates(const Options& options, std::int64_t samples)
      : adam_({.learning_rate = ebb::optim::cosine(
                   options.learning_rate,
                   {.steps = options.epochs * ((samples + options.batch - 1) / options.batch)})}),
        accumulator_(adam_, {.samples = options.batch}),
        accumulates_(options.accumulate > 1),
        leave_rest_(accumulates_ && samples % options.batch != 0) {}

  // In a graph: what makes a step when it is fetched.
  ebb::Tensor minimize(const ebb::Tensor& loss, const ebb::Parameters& params,
                       const ebb::Tensor& target) const {
    return accumulates_ ? accumulator_.minimize(loss, params, ebb::rows(target))
                        : adam_.minimize(loss, params);
  }
  // Whether an epoch ends with micro-batches that fill no batch, for which there is flush().
  bool leave_rest() const noexcept { return leave_rest_; }
  ebb::Tensor flush(const ebb::Parameters& params) const { return accumulator_.flush(params); }

 private:
  const ebb::optim::Adam adam_;
  const ebb::optim::Accumulator accumulator_;
  const bool accumulates_, leave_rest_;
};

}  // namespace examples
