#include "ebb/core/ops/collective.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

// In a world of one rank, where every collective is the identity; tests/distributed has more.
void collective_family(std::vector<Sample>& samples, References& references, DType) {
  static const distributed::World world, ordered({.ordered = true});
  const SampleInput rows{{kOpen, 3}};
  const auto add = [&](const OpDef& op, const char* how, Tensor (*call)(const Operand&)) {
    samples.push_back(sample_of(op, how, {rows}, EBB_CALL(call(in[0]))));
    samples.back().any_shape = true;
    samples.back().any_dtype = &op == &all_gather_op || &op == &broadcast_op;
    samples.back().reference = [](const Application& a) -> Arrays { return {a[0]}; };
  };
  add(all_reduce_op, "", [](const Operand& x) { return distributed::all_reduce(x, world); });
  add(all_reduce_op, "mean, ordered",
      [](const Operand& x) { return distributed::all_reduce(x, ordered, ReduceOp::mean); });
  add(all_reduce_max_op, "max",
      [](const Operand& x) { return distributed::all_reduce(x, world, ReduceOp::max); });
  add(all_gather_op, "", [](const Operand& x) { return distributed::all_gather(x, world); });
  add(reduce_scatter_op, "",
      [](const Operand& x) { return distributed::reduce_scatter(x, world); });
  add(broadcast_op, "", [](const Operand& x) { return distributed::broadcast(x, world); });
  const CollectiveAttributes alone{.world = &world.communicator()};
  CollectiveAttributes adding = alone;
  adding.adds = 1;
  samples.push_back(
      sample_of(broadcast_backward_op, "", {rows}, applying(broadcast_backward_op, alone)));
  samples.back().any_shape = true;
  samples.back().reference = [](const Application& a) -> Arrays { return {a[0]}; };

  for (const OpDef* const op : {&send_op, &recv_op}) {
    samples.push_back(sample_of(*op, "passes", {rows},
                                EBB_CALL(apply_one(*op, {in[0]}, alone, CallSite::here()))));
    samples.back().any_shape = samples.back().any_dtype = true;
    samples.back().reference = [](const Application& a) -> Arrays { return {a[0]}; };
  }

  // Sums are f32 or f64, also beside parts of 16 bits.
  const SampleInput total{{4, 3}, Values::any, DType::f32};
  for (const OpDef* const op : {&begin_total_op, &end_total_op, &begin_gather_op, &end_gather_op}) {
    const bool begins = op == &begin_total_op || op == &begin_gather_op;
    samples.push_back(
        sample_of(*op, begins ? "begins" : "ends", {total}, applying(*op, alone), kNoGradient));
    samples.back().any_shape = true;
    samples.back().any_dtype = op == &begin_gather_op || op == &end_gather_op;
    references.add(*op, [](const Application& a) { return a[0]; });
  }
  for (const OpDef* const op : {&gather_share_op, &whole_op}) {
    CollectiveAttributes gathering = alone;
    gathering.kind = Collective::all_gather;
    gathering.whole = {3, 4};
    samples.push_back(sample_of(*op, op == &whole_op ? "view" : "share", {{{12}}},
                                applying(*op, gathering), kNoGradient));
    samples.back().any_dtype = true;
    references.add(*op, [](const Application& a) {
      Array whole(Shape{3, 4});
      for (std::int64_t i = 0; i < 12; ++i) whole[i] = a[0][i];
      return whole;
    });
  }
  samples.push_back(sample_of(total_in_order_op, "in order",
                              {total, {{4, 3}, Values::any, DType::f32}, {{}, Values::count}},
                              applying(total_in_order_op, adding), kNoGradient));
  references.add(total_in_order_op, [](const Application& a) {
    return zip(a[0], zip(a[1], a[2], [](double x, double rows) { return x * rows; }),
               [](double sum, double part) { return sum + part; });
  });
  samples.push_back(
      moving_sample(rows_in_use_op, "", {rows}, EBB_CALL(detail::rows_in_use(in[0], world)), true));
  samples.back().order = kNoGradient;
  references.add(rows_in_use_op, [](const Application&) {
    Array one{Shape{}};
    one[0] = 1;
    return one;
  });
}

}  // namespace ebb::tests
