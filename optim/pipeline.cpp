#include "ebb/optim/pipeline.h"

#include <algorithm>
#include <deque>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/rule.h"

namespace ebb::distributed {
namespace {

// Worlds of two: of ranks 0 and 1, 2 and 3 and so on, or with an offset of 1 and 2, 3 and 4.
World pair_of(const World& world, int offset, CallSite site) {
  const int place = world.rank() + offset;
  return world.state().is_real() ? world.split(place / 2, site) : World::simulated(place % 2, 2);
}

struct Micro {
  std::int64_t rows;
  Tensor x, y = {};  // of this rank's stages; the last rank's y is the loss
};

// Each stage's parameters are on one rank alone, so that ranks have nothing to share or save
// together.
Device device_of(const Parameters& parameters, CallSite site) {
  const detail::CallScope at(site);
  if (parameters.is_symbolic()) detail::refuse("Pipeline", "takes no parameters of a graph");
  if (parameters.world())
    detail::refuse("Pipeline", "takes parameters without a world: each rank has its own stages");
  return parameters.device();
}

// Adds rows gradient to the sums of the parameters. Returns the gradient of x, if it has one.
Tensor differentiate(const Parameters& p, const Micro& micro, const Tensor& dy, Tensors& sums) {
  std::vector<detail::Edge> edges{detail::edge_of(micro.x)};
  for (const Parameters::Entry& entry : p.entries())
    edges.push_back(p.is_trainable(entry) ? detail::edge_of(entry.tensor) : detail::Edge());
  const Tensor rows = Tensor::from(micro.rows, dy.device());
  Tensor dx;
  detail::ReverseOptions options;
  options.take = [&](std::size_t i, Tensor gradient) {
    if (i == 0) return void(dx = std::move(gradient));
    if (sums.size() < edges.size() - 1) sums.resize(edges.size() - 1);  // a stage may declare late
    Tensor& sum = sums[i - 1];
    if (!sum.defined()) sum = cast(zeros_like(gradient), optim::state_dtype_of(gradient.dtype()));
    apply_one(optim::accumulate_op, {sum, gradient, rows}, {}, CallSite::here());
  };
  detail::reverse({&micro.y, 1}, {&dy, 1}, edges, options);
  return dx;
}

}  // namespace

Pipeline::Pipeline(const std::vector<Stage>& stages, Loss loss, const Parameters& parameters,
                   const World& world, const PipelineOptions& options, CallSite site)
    : world_(world),
      pairs_{pair_of(world, 0, site), pair_of(world, 1, site)},
      parameters_(parameters),
      loss_(std::move(loss)),
      micro_batches_(options.micro_batches),
      device_(device_of(parameters, site)) {
  const detail::CallScope at(site);
  const int count = static_cast<int>(stages.size()), size = world.size();
  const std::string what = "a pipeline of " + std::to_string(count) + " stages and " +
                           std::to_string(micro_batches_) + " micro-batches";
  world.state().exchange(what, 0);
  if (count < size || micro_batches_ < 1)
    detail::refuse("Pipeline", what + " is too few for " + std::to_string(size) + " ranks");
  const Parameters simulated(simulated_, {}, parameters.dtype());
  for (int i = 0; i < count * (rank_ + 1) / size; ++i) {
    const bool is_before = i < count * rank_ / size;
    const Parameters scope = (is_before ? simulated : parameters).scope(std::to_string(i));
    (is_before ? before_ : own_).push_back(stages[static_cast<std::size_t>(i)](scope));
  }
}

// The x of this rank for a part of the batch.
Tensor Pipeline::arrive(const Tensor& part) {
  if (rank_ == 0) return part;
  const detail::TapeModeScope scope(detail::without_history());
  Tensor& like = arriving_[Spec{part.dtype(), part.shape()}.to_string()];
  if (!like.defined()) {
    const detail::GeneratorScope no_draws;
    Tensor y = Tensor::zeros(part.shape(), part.dtype(), simulated_);
    for (const Function& stage : before_) y = stage(y);
    like = y;
  }
  return recv(Tensor::zeros(like.shape(), like.dtype(), device_), previous_).with_grad();
}

// While the next rank goes back with a micro-batch, this one computes another, and receives before
// it sends: so the two have one order of messages, and neither waits for longer.
Tensor Pipeline::minimize(const optim::Optimizer& optimizer, const Tensor& x, const Tensor& target,
                          CallSite site) try {
  const detail::CallScope at(site);
  const std::int64_t rows = x.size(0);
  if (target.size(0) != rows) detail::refuse<ShapeError>("Pipeline", "takes a target for each row");
  if (detail::tape_mode().tracing) detail::refuse("Pipeline", "makes its steps eagerly");
  if (detail::tape_mode().no_grad) detail::refuse("Pipeline", "is given no gradients under NoGrad");
  if (world_.state().has_batch())
    detail::refuse("Pipeline", "all ranks give the same batch: its loader has no .shard");
  if (optimizer.clip().global_norm > 0 && last_ > 0)
    detail::refuse("Pipeline", "no rank knows the gradients' global norm; clip by .norm or .value");
  const std::int64_t count = std::clamp<std::int64_t>(rows, 1, micro_batches_);
  const std::int64_t ahead = std::min<std::int64_t>(count, last_ - rank_);
  Tensors sums;
  Tensor loss = Tensor::zeros({}, DType::f64, device_);
  std::deque<Micro> alive;
  for (std::int64_t i = 0; i < count + ahead; ++i) {
    if (i < count) {
      const std::int64_t begin = rows * i / count, end = rows * (i + 1) / count;
      alive.push_back({end - begin, arrive(slice(x, begin, end))});
      Tensor& y = alive.back().y = alive.back().x;
      for (const Function& stage : own_) y = stage(y);
      if (rank_ == last_) y = reshape(loss_(y, slice(target, begin, end)), {});
    }
    const detail::TapeModeScope scope(detail::without_history());
    const Tensor& y = alive.front().y;
    Tensor dy;
    if (i >= ahead) dy = rank_ < last_ ? recv(zeros_like(y), next_) : ones_like(y);
    if (i < count && rank_ < last_) send(alive.back().y, next_);
    if (i < ahead) continue;
    const Micro micro = std::move(alive.front());
    alive.pop_front();
    if (rank_ == last_) loss = loss + cast(micro.y, DType::f64) * micro.rows;
    Tensor dx = differentiate(parameters_, micro, dy, sums);
    if (rank_ > 0) send(dx.defined() ? std::move(dx) : zeros_like(micro.x), previous_);
  }
  const detail::TapeModeScope scope(detail::without_history());
  loss = broadcast(loss / rows, world_, last_);
  for (Tensor& sum : sums)
    if (sum.defined())
      sum = cast(std::move(sum) / std::max<std::int64_t>(rows, 1), parameters_.dtype());
  sums.resize(parameters_.entries().size());
  const bool trains = std::ranges::any_of(sums, &Tensor::defined);
  if (trains && (rows > 0 || optimizer.world())) optimizer.apply(sums, parameters_);
  return loss;
} catch (const std::exception& error) {
  for (const World& world : {world_, next_, previous_, optimizer.world().value_or(world_)})
    if (!device_.is_simulated()) world.state().fail(error.what());
  throw;
}

}  // namespace ebb::distributed
