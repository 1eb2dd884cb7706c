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

Collective describe(const KernelContext& context) {
  Collective c = ebb::detail::describe(context);
  if (c.in_order) c.combine = c.adds ? accumulate_parts : combine;
  return c;
}

void copy_to(const Buffer& y, const Buffer& x) {
  if (y.data != x.data && y.elements() > 0) std::memcpy(y.data, x.data, y.spec.bytes());
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
  const int size = a.world->size();
  const bool is_root = a.world->rank() == a.root;
  Collective c = describe(context);
  if (a.adds) c.rows = *context.inputs[2].as<const std::int64_t>();
  if (a.kind == Collective::gather_shares && y.elements() > 0) {
    const std::int64_t first = ebb::detail::share_begin(y.elements(), size, a.world->rank());
    const std::int64_t own = ebb::detail::share_of(y.elements(), size, a.world->rank());
    const std::size_t element = size_of(y.spec.dtype);
    if (own > 0)
      std::memcpy(y.as<std::byte>() + static_cast<std::size_t>(first) * element, x.data,
                  static_cast<std::size_t>(own) * element);
  } else if (size == 1) {
    if (a.adds)
      accumulate_parts(c, x.data, y.data, x.elements(), {&c.rows, 1});
    else
      copy_to(y, x);
  }
  if (size == 1) return {};
  if (a.kind == Collective::broadcast && is_root) copy_to(y, x);
  c.from = x.data;
  c.to = y.data;
  c.workspace = context.workspace;
  if (const Status begun = a.world->begin(c); !begun.ok()) return begun;
  if (const Status done = a.world->finish(c.to); !done.ok()) return done;
  if (a.kind == Collective::reduce_to && !is_root && y.elements() > 0)
    std::memset(y.data, 0, y.spec.bytes());
  return a.op == ReduceOp::mean ? divide(y, size) : Status{};
}

MemoryNeeds collective_memory(const MemoryQuery& query) {
  const auto& a = query.attribute<CollectiveAttributes>();
  if (a.world->size() == 1) return {};
  const Collective c = ebb::detail::describe(query.inputs[0], query.inputs[a.adds ? 1 : 0], a);
  return {.workspace_bytes = c.workspace_bytes(a.world->size())};
}

Status count_collective(const KernelContext& context) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  if (world.size() > 1) world.count(ebb::detail::describe(context));
  return {};
}

Status begin_total(const KernelContext& context) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  if (world.size() == 1) return {};
  Collective c = describe(context);
  c.combine = nullptr;
  c.from = c.to = context.inputs[0].data;
  return world.begin(c);
}

Status end_total(const KernelContext& context) {
  Communicator& world = *context.attribute<CollectiveAttributes>().world;
  return world.size() == 1 ? Status{} : world.finish(context.inputs[0].data);
}

Status rows_in_use(const KernelContext& context) {
  return context.attribute<CollectiveAttributes>().world->rows(
      *context.outputs[0].as<std::int64_t>());
}

}  // namespace ebb::cpu
