#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ebb/core/base/no_copy.h"
#include "ebb/optim/optimizer.h"

namespace ebb::distributed {

struct PipelineOptions {
  int micro_batches = 1;  // parts that the rows of each batch are cut into
};

// A network in stages that are dealt out to the ranks of a world: each has the parameters of its
// own, and sends what they compute to the next. A step is 1F1B (Narayanan et al., "PipeDream", SOSP
// 2019): rank k of n keeps the activations of n - k micro-batches at most. Used by one thread.
class Pipeline : NoCopy {
 public:
  // From a micro-batch, rows first, to what the next stage is given.
  using Function = std::function<Tensor(const Tensor& x)>;
  // Declares a stage's parameters, in a scope of its number, and returns its function. For the
  // stages before this rank's, on a simulated device, both find the shape of what arrives. So a
  // function computes with its parameters and x alone.
  using Stage = std::function<Function(const Parameters& parameters)>;
  // The mean loss of a micro-batch's rows, one element, from the last stage's result.
  using Loss = std::function<Tensor(const Tensor& y, const Tensor& target)>;

  // All ranks make the same pipeline. Throws Error for fewer stages than ranks, no micro-batch,
  // ranks that differ in one of the two, and parameters of a graph or with a world.
  Pipeline(const std::vector<Stage>& stages, Loss loss, const Parameters& parameters,
           const World& world, const PipelineOptions& options = {},
           CallSite site = CallSite::here());

  // A step with a batch, all of which every rank gives; only the first reads x, only the last
  // target. Returns the mean loss before it, f64[], on every rank: NaN of a batch without rows,
  // which changes nothing. Updates as an Accumulator that is given the micro-batches in order (bit
  // for bit in f32, but for clipping by .norm, which rounds in another order); of fewer rows, one
  // each. Eager. Throws ShapeError for another number of targets, Error for several ranks' clipping
  // by a global norm, a batch of a loader with .shard = world, and under NoGrad; OutOfMemory. Then
  // the others throw by their next step, and the pipeline is over.
  Tensor minimize(const optim::Optimizer& optimizer, const Tensor& x, const Tensor& target,
                  CallSite site = CallSite::here());

  // The part of a step in which a rank waits, if stages take equally long: (n - 1) / (m + n - 1) of
  // n ranks and m micro-batches (Narayanan et al., "Megatron-LM", SC 2021).
  double bubble() const noexcept { return 1.0 * last_ / (micro_batches_ + last_); }

 private:
  Tensor arrive(const Tensor& part);

  const World world_, pairs_[2];
  const int rank_ = world_.rank(), last_ = world_.size() - 1;
  const World &next_ = pairs_[rank_ % 2], &previous_ = pairs_[1 - rank_ % 2];
  const Parameters parameters_;
  const Loss loss_;
  const int micro_batches_;
  const Device device_, simulated_ = device_.twin();
  std::vector<Function> before_, own_;      // stages of the ranks before this one; its own
  std::map<std::string, Tensor> arriving_;  // simulated, by x's shape and dtype
};

}  // namespace ebb::distributed
