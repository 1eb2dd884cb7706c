// The kernels wait for other ranks, as no other kernel does: a world's thread sends meanwhile.
#include "ebb/core/kernels/collective.h"

#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::cpu {
namespace {

Communicator& world_of(const KernelContext& context) noexcept {
  return *context.attribute<CollectiveAttributes>().world;
}

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
  static_cast<void>(for_stored(c.spec.dtype, [&]<class T>(T) {
    combine_parts(c.op, static_cast<const T*>(from), static_cast<T*>(to), count,
                  static_cast<std::int64_t>(rows.size()));
  }));
}

void accumulate_parts(const Collective& c, const void* from, void* to, std::int64_t count,
                      std::span<const std::int64_t> rows) {
  static_cast<void>(ebb::detail::add_parts(accumulate, {}, c, from, to, count, rows));
}

Status divide(const Buffer& y, int by) {
  return for_floating(y.spec.dtype, [&]<class T>(T) {
    using C = Computed<T>;
    T* const to = y.as<T>();
    for_pieces(y.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = static_cast<T>(static_cast<C>(to[i]) / static_cast<C>(by));
    });
  });
}

}  // namespace

Status collective(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer &x = context.inputs[a.adds ? 1 : 0], &y = context.outputs[0];
  const int size = a.world->size(), rank = a.world->rank();
  if (size == 1 && a.adds) return accumulate(context);
  const bool gathers = a.kind == Collective::all_gather;
  if (size == 1 || gathers || (a.kind == Collective::broadcast && rank == a.root)) {
    const std::span<std::byte> own =
        gathers ? ebb::detail::share_in(y, size, rank) : ebb::detail::share_in(y, 1, 0);
    if (own.data() != x.data && !own.empty()) std::memcpy(own.data(), x.data, own.size());
  }
  if (size == 1) return {};
  Collective c = ebb::detail::describe(context);
  if (c.in_order) c.combine = c.adds ? accumulate_parts : combine;
  if (a.adds) c.rows = *context.inputs[2].as<const std::int64_t>();
  c.from = x.data;
  c.to = y.data;
  c.workspace = context.workspace;
  if (const Status done = a.world->run(c); !done.ok()) return done;
  if (a.kind == Collective::reduce_to && rank != a.root && y.elements() > 0)
    std::memset(y.data, 0, y.spec.bytes());
  return a.op == ReduceOp::mean ? divide(y, size) : Status{};
}

MemoryNeeds collective_memory(const MemoryQuery& query) {
  const auto& a = query.attribute<CollectiveAttributes>();
  const Collective c = ebb::detail::describe(query.inputs[0], query.inputs[a.adds ? 1 : 0], a);
  return {.workspace_bytes = c.workspace_bytes(a.world->size())};
}

Status count_collective(const KernelContext& context) {
  return world_of(context).count(ebb::detail::describe(context));
}

Status begin_total(const KernelContext& context) {
  Collective c = ebb::detail::describe(context);
  c.from = c.to = context.inputs[0].data;
  return world_of(context).begin(c);
}

Status end_total(const KernelContext& context) {
  return world_of(context).finish(context.inputs[0].data);
}

Status rows_in_use(const KernelContext& context) {
  return world_of(context).rows(*context.outputs[0].as<std::int64_t>());
}

}  // namespace ebb::cpu
