#include "ebb/core/ops/collective.h"

#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/interned.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using distributed::World;

CollectiveAttributes attributes_of(const World& world, Collective::Kind kind, CallSite site,
                                   ReduceOp op = ReduceOp::sum, int root = 0) {
  return {.world = &world.communicator(),
          .where = detail::interned(detail::at(site.resolved())),
          .kind = kind,
          .op = op,
          .root = root};
}

// Applies the collective that is part of a gradient, in the world of the node that is
// differentiated, to one of its tensors.
Tensor apply_in(const GradientContext& g, const OpDef& op, Collective::Kind kind, ReduceOp how,
                const Tensor& x) {
  CollectiveAttributes attributes = g.attribute<CollectiveAttributes>();
  attributes.kind = kind;
  attributes.op = how;
  return apply_one(op, {x}, attributes, g.site());
}

template <const OpDef& op, Collective::Kind kind>
Tensors gradient_by(const GradientContext& g) {
  return {apply_in(g, op, kind, g.attribute<CollectiveAttributes>().op, g.dy())};
}

// send() and recv() are broadcasts in a world of two.
Tensor pass(const OpDef& op, const Operand& x, const World& pair, int from) {
  if (pair.size() != 2) detail::fail(op, "takes a world of two ranks, as world.split() makes", x);
  return detail::apply_to(
      op, {x}, attributes_of(pair, Collective::broadcast, x.site(), ReduceOp::sum, from));
}

// The gradient goes back.
template <const OpDef& op>
Tensors pass_back(const GradientContext& g) {
  auto attributes = g.attribute<CollectiveAttributes>();
  attributes.root = 1 - attributes.root;
  return {apply_one(op, {g.take_dy()}, attributes, g.site())};
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

Shape own_share(const CollectiveAttributes& a, const Shape& whole) {
  return {detail::share_of(whole.elements(), a.world->size(), a.world->rank())};
}

void infer_total_in_order(Inference& inference) {
  infer_total(inference);
  const auto& a = inference.attribute<CollectiveAttributes>();
  const Shape& part = inference.inputs[1].shape;
  const Shape total = a.kind == Collective::reduce_scatter ? own_share(a, part) : part;
  inference.require(inference.inputs[0].shape == total && is_floating(inference.inputs[1].dtype),
                    "takes a total and a part of one shape");
  detail::require_scalar(inference, 2, DType::i64, "`rows`");
}

void infer_whole(Inference& inference) {
  const auto& a = inference.attribute<CollectiveAttributes>();
  const Spec& share = inference.inputs[0];
  inference.require(share.shape == own_share(a, a.whole), "takes this rank's share");
  inference.output(share.dtype, a.whole);
}

// Not captured on a GPU: in each run the ranks first compare what they are about to do.
constexpr DeviceKernel kernel(Kernel run, bool begins = true) {
  return {.run = run,
          .memory = cpu::collective_memory,
          .can_be_captured = false,
          .simulated = begins ? cpu::count_collective : nullptr};
}

constexpr OpDef over_ranks(const char* name, void (*infer)(Inference&),
                           Tensors (*gradient)(const GradientContext&), Keeps keeps = {},
                           Positions takes_over = {}) {
  return {.name = name,
          .infer = infer,
          .gradient = gradient,
          .keeps = keeps,
          .takes_over = takes_over,
          .stateful = true,
          .communicates = true,
          .cpu = kernel(cpu::collective),
          .cuda = kernel(cuda::collective)};
}

// Writes its first input.
constexpr OpDef in_place(const char* name, void (*infer)(Inference&), Kernel cpu, Kernel cuda,
                         bool begins = true) {
  return {.name = name,
          .infer = infer,
          .updates = bit(0),
          .stateful = true,
          .communicates = true,
          .cpu = kernel(cpu, begins),
          .cuda = kernel(cuda, begins)};
}

}  // namespace

Tensor distributed::all_reduce(const Operand& x, const World& world, ReduceOp op) {
  return detail::apply_to(op == ReduceOp::max ? all_reduce_max_op : all_reduce_op, {x},
                          attributes_of(world, Collective::all_reduce, x.site(), op));
}

Tensor distributed::all_gather(const Operand& x, const World& world) {
  return detail::apply_to(all_gather_op, {x},
                          attributes_of(world, Collective::all_gather, x.site()));
}

Tensor distributed::reduce_scatter(const Operand& x, const World& world, ReduceOp op) {
  if (op == ReduceOp::max)
    detail::fail(reduce_scatter_op, "makes sums and means; all_reduce has max", x);
  return detail::apply_to(reduce_scatter_op, {x},
                          attributes_of(world, Collective::reduce_scatter, x.site(), op));
}

Tensor distributed::broadcast(const Operand& x, const World& world, int root) {
  if (root < 0 || root >= world.size())
    detail::fail(broadcast_op,
                 "there is no rank " + std::to_string(root) + " of " +
                     std::to_string(world.size()) + ", counted from 0",
                 x);
  return detail::apply_to(
      broadcast_op, {x},
      attributes_of(world, Collective::broadcast, x.site(), ReduceOp::sum, root));
}

Tensor distributed::send(const Operand& x, const World& pair) {
  return pass(send_op, x, pair, pair.rank());
}

Tensor distributed::recv(const Operand& like, const World& pair) {
  return pass(recv_op, like, pair, 1 - pair.rank());
}

double distributed::mean(double value, std::int64_t rows, const World& world, CallSite site) {
  const detail::CallSiteScope at(site);
  if (detail::predicted_world() && !world.state().is_real()) {
    static_cast<void>(world.state().count({.spec = {DType::f64, {2}}, .sum_dtype = DType::f64}));
    return value;
  }
  const auto weight = static_cast<double>(rows);
  const std::vector<double> sums =
      all_reduce(Tensor::from({rows > 0 ? value * weight : 0, weight}), world).to_vector<double>();
  return sums[0] / sums[1];
}

namespace detail {

// Applies an operator of a step, which is ebb's and not of a line of the user's.
static Tensor apply_own(const OpDef& op, std::initializer_list<Input> inputs, const World& world,
                        Collective::Kind kind, const char* name = "", bool adds = false) {
  const CallSite site = CallSite::here();
  CollectiveAttributes attributes = attributes_of(world, kind, site);
  attributes.name = name;
  attributes.adds = adds ? 1 : 0;
  return apply_one(op, Inputs(inputs.begin(), inputs.size()), attributes, site);
}

Tensor begin_total(const Tensor& total, const World& world, const char* name) {
  return apply_own(begin_total_op, {total}, world, Collective::all_reduce, name);
}

Tensor end_total(const Tensor& total, const World& world) {
  return apply_own(end_total_op, {total}, world, Collective::all_reduce);
}

Tensor total_in_order(const Tensor& total, const Tensor& part, const Tensor& rows,
                      const World& world, const char* name) {
  const bool is_share = world.sharding() >= distributed::Sharding::gradients;
  return apply_own(total_in_order_op, {total, part, rows}, world,
                   is_share ? Collective::reduce_scatter : Collective::all_reduce, name, true);
}

Tensor share(const Tensor& x, const World& world) {
  const std::int64_t elements = x.shape().elements();
  const std::int64_t begin = share_begin(elements, world.size(), world.rank());
  return slice(reshape(x, {elements}), begin,
               begin + share_of(elements, world.size(), world.rank()));
}

Tensor begin_gather(const Tensor& x, const World& world, const char* name) {
  return apply_own(begin_gather_op, {x}, world, Collective::all_gather, name);
}

Tensor end_gather(const Tensor& x, const World& world) {
  return apply_own(end_gather_op, {x}, world, Collective::all_gather);
}

Tensor rows_in_use(const Tensor& after, const World& world) {
  return apply_own(rows_in_use_op, {after}, world, Collective::all_reduce);
}

}  // namespace detail

constinit const OpDef all_reduce_op = over_ranks(
    "all_reduce", infer_all_reduce, gradient_by<all_reduce_op, Collective::all_reduce>, {}, bit(0));

constinit const OpDef all_reduce_max_op = over_ranks(
    "all_reduce", infer_all_reduce,
    [](const GradientContext& g) -> Tensors {
      const auto sum = [&](const Tensor& x) {
        return apply_in(g, all_reduce_op, Collective::all_reduce, ReduceOp::sum, x);
      };
      const Tensor is_greatest = cast(equal(g.x(0), g.y()), g.dy().dtype());
      return {is_greatest / sum(is_greatest) * sum(g.dy())};
    },
    input(0) | output(0));

constinit const OpDef all_gather_op = over_ranks(
    "all_gather", infer_all_gather, gradient_by<reduce_scatter_op, Collective::reduce_scatter>);

constinit const OpDef reduce_scatter_op =
    over_ranks("reduce_scatter", infer_reduce_scatter, [](const GradientContext& g) -> Tensors {
      const auto& attributes = g.attribute<CollectiveAttributes>();
      const Tensor dx = apply_in(g, all_gather_op, Collective::all_gather, ReduceOp::sum, g.dy());
      return {attributes.op == ReduceOp::mean ? dx / attributes.world->size() : dx};
    });

constinit const OpDef broadcast_op =
    over_ranks("broadcast", detail::output_like_first,
               gradient_by<broadcast_backward_op, Collective::reduce_to>);

// One operator for all ranks: a graph of one that needs no sum would leave the collective out.
constinit const OpDef broadcast_backward_op = over_ranks(
    "broadcast_backward", infer_all_reduce, gradient_by<broadcast_op, Collective::broadcast>);

constinit const OpDef send_op =
    over_ranks("send", detail::output_like_first, pass_back<recv_op>, {}, bit(0));
constinit const OpDef recv_op =
    over_ranks("recv", detail::output_like_first, pass_back<send_op>, {}, bit(0));

constinit const OpDef begin_total_op =
    in_place("all_reduce", infer_total, cpu::begin_total, cuda::begin_total);
constinit const OpDef end_total_op =
    in_place("all_reduce", infer_total, cpu::end_total, cuda::end_total, false);
constinit const OpDef total_in_order_op =
    in_place("all_reduce", infer_total_in_order, cpu::collective, cuda::collective);
constinit const OpDef begin_gather_op =
    in_place("all_gather", detail::output_like_first, cpu::begin_total, cuda::begin_total);
constinit const OpDef end_gather_op =
    in_place("all_gather", detail::output_like_first, cpu::end_total, cuda::end_total, false);

constinit const OpDef gather_share_op = over_ranks("all_gather", infer_whole, nullptr);
constinit const OpDef whole_op{.name = "all_gather",
                               .infer = infer_whole,
                               .view = [](const MemoryQuery&) { return std::size_t{0}; }};

constinit const OpDef rows_in_use_op{
    .name = "rows_in_use",
    .infer = [](Inference& inference) { inference.output(DType::i64, {}); },
    .stateful = true,
    .stops_gradient = bit(0),
    .cpu = {cpu::rows_in_use},
    .cuda = {.run = cuda::rows_in_use, .can_be_captured = false}};

}  // namespace ebb
