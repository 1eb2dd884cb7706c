// The kernels wait for other ranks, as no other kernel does: a world's thread sends meanwhile.
#include "ebb/core/kernels/collective.h"

#include <algorithm>
#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {
namespace {

// Types to compute in: halves in float, all others in their own.
template <class S, class P>
using Wider = std::common_type_t<Computed<S>, Computed<P>>;

// to[i] = the ranks' from[k][i] in their order.
template <class T>
void combine_parts(ReduceOp op, const T* from, T* to, std::int64_t count, std::int64_t ranks) {
  using C = Computed<T>;
  for_pieces(count, kPieceElements, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      C all = static_cast<C>(from[i]);
      for (std::int64_t k = 1; k < ranks; ++k) {
        const C next = static_cast<C>(from[k * count + i]);
        all = op == ReduceOp::max ? (next > all || next != next ? next : all)
                                  : static_cast<C>(all + next);
      }
      to[i] = static_cast<T>(all);
    }
  });
}

void combine(const Collective& c, const void* from, void* to, std::int64_t count,
             std::span<const std::int64_t> rows) {
  flush_denormals_on_this_thread();
  static_cast<void>(for_stored(c.spec.dtype, [&]<class T>(T) {
    combine_parts(c.op, static_cast<const T*>(from), static_cast<T*>(to), count,
                  static_cast<std::int64_t>(rows.size()));
  }));
}

// to[i] += rows[k] from[k][i] for each rank k that has rows: the steps of cpu::accumulate.
void accumulate_parts(const Collective& c, const void* from, void* to, std::int64_t count,
                      std::span<const std::int64_t> rows) {
  flush_denormals_on_this_thread();
  static_cast<void>(for_floating(c.spec.dtype, [&]<class G>(G) {
    return for_wide(c.sum_dtype, [&]<class S>(S) {
      using T = Wider<S, G>;
      for (std::size_t k = 0; k < rows.size(); ++k) {
        if (rows[k] == 0) continue;
        const T weight = static_cast<T>(rows[k]);
        const G* const part = static_cast<const G*>(from) + static_cast<std::int64_t>(k) * count;
        S* const sum = static_cast<S*>(to);
        for_pieces(count, kPieceElements, [=](std::int64_t begin, std::int64_t end) {
          for_computed(
              part, sum, begin, end, [=](const auto* x, auto* y, std::int64_t, std::int64_t many) {
                for (std::int64_t i = 0; i < many; ++i)
                  y[i] = static_cast<S>(static_cast<T>(y[i]) + weight * static_cast<T>(x[i]));
              });
        });
      }
    });
  }));
}

// A collective of input and output 0. MPI knows no numbers of 16 bits; ebb sums them itself.
Collective describe(Collective::Kind kind, const Spec& spec, const CollectiveAttributes& a) {
  Collective c;
  c.kind = kind;
  c.op = a.op;
  c.root = a.root;
  c.spec = spec;
  c.sum_dtype = spec.dtype;
  c.name = a.name;
  c.where = a.where;
  const bool reduces = kind == Collective::all_reduce || kind == Collective::reduce_scatter;
  const bool may_be_nan = a.op == ReduceOp::max && is_floating(spec.dtype);  // MPI may drop it
  if (reduces && (a.world->is_ordered() || is_half(spec.dtype) || may_be_nan)) c.combine = combine;
  return c;
}

Collective describe_total(const Spec& part, DType sum, const CollectiveAttributes& a) {
  Collective c = describe(Collective::all_reduce, part, a);
  c.sum_dtype = sum;
  c.adds = true;
  c.combine = accumulate_parts;
  return c;
}

Status run(const KernelContext& context, Collective c) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  c.to = context.outputs[0].data;
  if (!c.from) c.from = context.inputs[0].data;
  c.workspace = context.workspace;
  if (const Status begun = world.begin(c); !begun.ok()) return begun;
  return world.finish(c.to);
}

Status of_kind(const KernelContext& context, Collective::Kind kind) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer &x = context.inputs[0], &y = context.outputs[0];
  if (a.world->size() == 1) {
    if (y.data != x.data && y.elements() > 0) std::memcpy(y.data, x.data, y.spec.bytes());
    return {};
  }
  if (kind == Collective::broadcast && a.world->rank() == a.root && y.data != x.data &&
      y.elements() > 0)
    std::memcpy(y.data, x.data, y.spec.bytes());
  return run(context, describe(kind, x.spec, a));
}

// Divides a sum by the number of ranks.
Status mean_of(const KernelContext& context, Collective::Kind kind) {
  if (const Status status = of_kind(context, kind); !status.ok()) return status;
  const auto& a = context.attribute<CollectiveAttributes>();
  if (a.op != ReduceOp::mean || a.world->size() == 1) return {};
  const Buffer& y = context.outputs[0];
  return for_floating(y.spec.dtype, [&]<class T>(T) {
    using C = Computed<T>;
    const C ranks = static_cast<C>(a.world->size());
    T* const to = y.as<T>();
    for_pieces(y.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = static_cast<T>(static_cast<C>(to[i]) / ranks);
    });
  });
}

MemoryNeeds workspace(const MemoryQuery& query, Collective::Kind kind) {
  const auto& a = query.attribute<CollectiveAttributes>();
  if (a.world->size() == 1) return {};
  return {.workspace_bytes = describe(kind, query.inputs[0], a).workspace_bytes(a.world->size())};
}

Status count(const KernelContext& context, const Collective& c) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  if (world.size() > 1) world.count(c);
  return {};
}

Status count_kind(const KernelContext& context, Collective::Kind kind) {
  return count(context,
               describe(kind, context.inputs[0].spec, context.attribute<CollectiveAttributes>()));
}

}  // namespace

Status all_reduce(const KernelContext& context) { return mean_of(context, Collective::all_reduce); }
MemoryNeeds all_reduce_memory(const MemoryQuery& query) {
  return workspace(query, Collective::all_reduce);
}
Status all_gather(const KernelContext& context) { return of_kind(context, Collective::all_gather); }
Status reduce_scatter(const KernelContext& context) {
  return mean_of(context, Collective::reduce_scatter);
}
MemoryNeeds reduce_scatter_memory(const MemoryQuery& query) {
  return workspace(query, Collective::reduce_scatter);
}
Status broadcast_from(const KernelContext& context) {
  return of_kind(context, Collective::broadcast);
}

Status broadcast_backward(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer& y = context.outputs[0];
  if (const Status status = of_kind(context, Collective::all_reduce); !status.ok()) return status;
  if (a.world->rank() != a.root && y.elements() > 0) std::memset(y.data, 0, y.spec.bytes());
  return {};
}

Status begin_total(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  if (a.world->size() == 1) return {};
  Collective c = describe(Collective::all_reduce, context.inputs[0].spec, a);
  c.combine = nullptr;
  c.from = c.to = context.inputs[0].data;
  return a.world->begin(c);
}

Status end_total(const KernelContext& context) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  return world.size() == 1 ? Status{} : world.finish(context.inputs[0].data);
}

Status total_in_order(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer &total = context.inputs[0], &part = context.inputs[1];
  Collective c = describe_total(part.spec, total.spec.dtype, a);
  c.rows = *context.inputs[2].as<const std::int64_t>();
  if (a.world->size() == 1) {
    accumulate_parts(c, part.data, total.data, part.elements(), {&c.rows, 1});
    return {};
  }
  c.from = part.data;
  return run(context, c);
}
MemoryNeeds total_in_order_memory(const MemoryQuery& query) {
  const auto& a = query.attribute<CollectiveAttributes>();
  if (a.world->size() == 1) return {};
  const Collective c = describe_total(query.inputs[1], query.inputs[0].dtype, a);
  return {.workspace_bytes = c.workspace_bytes(a.world->size())};
}

Status rows_in_use(const KernelContext& context) {
  return context.attribute<CollectiveAttributes>().world->rows(
      *context.outputs[0].as<std::int64_t>());
}

Status count_all_reduce(const KernelContext& context) {
  return count_kind(context, Collective::all_reduce);
}
Status count_all_gather(const KernelContext& context) {
  return count_kind(context, Collective::all_gather);
}
Status count_reduce_scatter(const KernelContext& context) {
  return count_kind(context, Collective::reduce_scatter);
}
Status count_broadcast(const KernelContext& context) {
  return count_kind(context, Collective::broadcast);
}
Status count_total(const KernelContext& context) {
  return count(context, describe_total(context.inputs[1].spec, context.inputs[0].spec.dtype,
                                       context.attribute<CollectiveAttributes>()));
}

}  // namespace ebb::cpu
