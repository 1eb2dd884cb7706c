#include "ebb/core/ops/collective.h"

#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/interned.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using distributed::World;

CollectiveAttributes attributes_of(const World& world, CallSite site, ReduceOp op = ReduceOp::sum,
                                   int root = 0, const char* name = "") {
  return {.world = &world.communicator(),
          .name = name,
          .where = detail::interned(detail::at(site.resolved())),
          .op = op,
          .root = root};
}

// The world and options of the node that a rule differentiates, for the operator of its gradient.
CollectiveAttributes like(const GradientContext& g, ReduceOp op, int root = 0) {
  CollectiveAttributes attributes = g.attribute<CollectiveAttributes>();
  attributes.op = op;
  attributes.root = root;
  return attributes;
}

Tensor reduced(const Tensor& x, const CollectiveAttributes& attributes, CallSite site) {
  return apply_one(all_reduce_op, {x}, attributes, site);
}

void require_reducible(const Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  const bool is_mean = inference.attribute<CollectiveAttributes>().op == ReduceOp::mean;
  inference.require(is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64,
                    "takes floating numbers, i32 and i64 (cast() converts)");
  inference.require(is_floating(dtype) || !is_mean, "makes a mean of floating numbers only");
}

void infer_all_reduce(Inference& inference) {
  require_reducible(inference);
  detail::output_like_first(inference);
}

std::int64_t ranks_of(const Inference& inference) {
  return inference.attribute<CollectiveAttributes>().world->size();
}

void infer_all_gather(Inference& inference) {
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() > 0, "takes a tensor with an axis to gather along");
  Shape shape = x.shape;
  if (shape.dim(0) != kOpen) shape.set(0, shape.dim(0) * ranks_of(inference));
  inference.output(x.dtype, shape);
}

void infer_reduce_scatter(Inference& inference) {
  require_reducible(inference);
  const Spec& x = inference.inputs[0];
  inference.require(x.shape.rank() > 0, "takes a tensor with an axis to cut along");
  Shape shape = x.shape;
  if (shape.dim(0) != kOpen) {
    if (shape.dim(0) % ranks_of(inference) != 0)
      inference.fail("deals out the leading axis evenly, to " +
                     std::to_string(ranks_of(inference)) + " ranks");
    shape.set(0, shape.dim(0) / ranks_of(inference));
  }
  inference.output(x.dtype, shape);
}

void infer_total(Inference& inference) {
  inference.require(
      inference.inputs[0].dtype == DType::f32 || inference.inputs[0].dtype == DType::f64,
      "sums f32 and f64");
  detail::output_like_first(inference);
}

void infer_total_in_order(Inference& inference) {
  infer_total(inference);
  inference.require(detail::may_equal(inference.inputs[0].shape, inference.inputs[1].shape) &&
                        is_floating(inference.inputs[1].dtype),
                    "takes a total and a part of one shape");
  detail::require_scalar(inference, 2, DType::i64, "`rows`");
}

// On a GPU.
constexpr DeviceKernel kCopies = {.run = cuda::copy_alone}, kSums = {.run = cuda::total_alone};

constexpr DeviceKernel kernel(Kernel run, Kernel simulated, MemoryRule memory = nullptr) {
  return {.run = run, .memory = memory, .simulated = simulated};
}

constexpr OpDef in_place(void (*infer)(Inference&), DeviceKernel cpu, DeviceKernel cuda = kSums) {
  return {.name = "all_reduce",
          .infer = infer,
          .updates = bit(0),
          .stateful = true,
          .communicates = true,
          .cpu = cpu,
          .cuda = cuda};
}

}  // namespace

Tensor distributed::all_reduce(const Operand& x, const World& world, ReduceOp op) {
  const OpDef& definition = op == ReduceOp::max ? all_reduce_max_op : all_reduce_op;
  return detail::apply_to(definition, {x}, attributes_of(world, x.site(), op));
}

Tensor distributed::all_gather(const Operand& x, const World& world) {
  return detail::apply_to(all_gather_op, {x}, attributes_of(world, x.site()));
}

Tensor distributed::reduce_scatter(const Operand& x, const World& world, ReduceOp op) {
  if (op == ReduceOp::max)
    detail::fail(reduce_scatter_op, "makes sums and means; all_reduce has max", x);
  return detail::apply_to(reduce_scatter_op, {x}, attributes_of(world, x.site(), op));
}

Tensor distributed::broadcast(const Operand& x, const World& world, int root) {
  if (root < 0 || root >= world.size())
    detail::fail(broadcast_op,
                 "there is no rank " + std::to_string(root) + " of " +
                     std::to_string(world.size()) + ", counted from 0",
                 x);
  return detail::apply_to(broadcast_op, {x}, attributes_of(world, x.site(), ReduceOp::sum, root));
}

double distributed::mean(double value, std::int64_t rows, const World& world, CallSite site) {
  const detail::CallSiteScope at(site);
  const auto weight = static_cast<double>(rows);
  const std::vector<double> sums =
      all_reduce(Tensor::from({rows > 0 ? value * weight : 0, weight}), world).to_vector<double>();
  return sums[0] / sums[1];
}

namespace detail {

Tensor begin_total(const Tensor& total, const World& world, const char* name) {
  const CallSite site = CallSite::here();
  return apply_one(begin_total_op, {total}, attributes_of(world, site, ReduceOp::sum, 0, name),
                   site);
}

Tensor end_total(const Tensor& total, const World& world) {
  return apply_one(end_total_op, {total}, attributes_of(world, CallSite::here()), CallSite::here());
}

Tensor total_in_order(const Tensor& total, const Tensor& part, const Tensor& rows,
                      const World& world, const char* name) {
  const CallSite site = CallSite::here();
  return apply_one(total_in_order_op, {total, part, rows},
                   attributes_of(world, site, ReduceOp::sum, 0, name), site);
}

Tensor rows_in_use(const Tensor& after, const World& world) {
  return apply_one(rows_in_use_op, {after}, attributes_of(world, CallSite::here()),
                   CallSite::here());
}

}  // namespace detail

constinit const OpDef all_reduce_op{
    .name = "all_reduce",
    .infer = infer_all_reduce,
    .gradient = [](const GradientContext& g) -> Tensors {
      return {reduced(g.dy(), like(g, g.attribute<CollectiveAttributes>().op), g.site())};
    },
    .takes_over = bit(0),
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::all_reduce, cpu::count_all_reduce, cpu::all_reduce_memory),
    .cuda = kCopies};

constinit const OpDef all_reduce_max_op{
    .name = "all_reduce",
    .infer = infer_all_reduce,
    .gradient = [](const GradientContext& g) -> Tensors {
      const Tensor is_greatest = cast(equal(g.x(0), g.y()), g.dy().dtype());
      const CollectiveAttributes sum = like(g, ReduceOp::sum);
      return {is_greatest / reduced(is_greatest, sum, g.site()) * reduced(g.dy(), sum, g.site())};
    },
    .keeps = input(0) | output(0),
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::all_reduce, cpu::count_all_reduce, cpu::all_reduce_memory),
    .cuda = kCopies};

constinit const OpDef all_gather_op{
    .name = "all_gather",
    .infer = infer_all_gather,
    .gradient = [](const GradientContext& g) -> Tensors {
      return {apply_one(reduce_scatter_op, {g.dy()}, like(g, ReduceOp::sum), g.site())};
    },
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::all_gather, cpu::count_all_gather),
    .cuda = kCopies};

constinit const OpDef reduce_scatter_op{
    .name = "reduce_scatter",
    .infer = infer_reduce_scatter,
    .gradient = [](const GradientContext& g) -> Tensors {
      const Tensor dx = apply_one(all_gather_op, {g.dy()}, like(g, ReduceOp::sum), g.site());
      const auto& attributes = g.attribute<CollectiveAttributes>();
      return {attributes.op == ReduceOp::mean ? dx / attributes.world->size() : dx};
    },
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::reduce_scatter, cpu::count_reduce_scatter, cpu::reduce_scatter_memory),
    .cuda = kCopies};

constinit const OpDef broadcast_op{
    .name = "broadcast",
    .infer = detail::output_like_first,
    .gradient = [](const GradientContext& g) -> Tensors {
      const auto& attributes = g.attribute<CollectiveAttributes>();
      return {apply_one(broadcast_backward_op, {g.dy()}, attributes, g.site())};
    },
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::broadcast_from, cpu::count_broadcast),
    .cuda = kCopies};

// One operator for all ranks: a graph of one that needs no sum would leave the collective out.
constinit const OpDef broadcast_backward_op{
    .name = "broadcast_backward",
    .infer = infer_all_reduce,
    .gradient = [](const GradientContext& g) -> Tensors {
      return {apply_one(broadcast_op, {g.dy()}, g.attribute<CollectiveAttributes>(), g.site())};
    },
    .stateful = true,
    .communicates = true,
    .cpu = kernel(cpu::broadcast_backward, cpu::count_all_reduce, cpu::all_reduce_memory),
    .cuda = kCopies};

constinit const OpDef begin_total_op =
    in_place(infer_total, kernel(cpu::begin_total, cpu::count_all_reduce));
constinit const OpDef end_total_op = in_place(infer_total, kernel(cpu::end_total, nullptr));
constinit const OpDef total_in_order_op = in_place(
    infer_total_in_order, kernel(cpu::total_in_order, cpu::count_total, cpu::total_in_order_memory),
    {.run = cuda::add_alone});

constinit const OpDef rows_in_use_op{
    .name = "rows_in_use",
    .infer = [](Inference& inference) { inference.output(DType::i64, {}); },
    .stateful = true,
    .stops_gradient = bit(0),
    .cpu = {cpu::rows_in_use},
    .cuda = {.run = cuda::rows_in_use, .can_be_captured = false}};

}  // namespace ebb
