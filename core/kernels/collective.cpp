#include "ebb/core/kernels/collective.h"

#include "ebb/core/kernels/carver.h"

namespace ebb {

std::size_t Collective::workspace_bytes(int size) const noexcept {
  if (!in_order) return 0;
  const std::int64_t elements = detail::product(spec.shape, 0, spec.shape.rank());
  const auto parts = static_cast<std::size_t>(detail::share_of(elements, size, 0) * size);
  return aligned_bytes(parts * size_of(spec.dtype)) +
         (adds ? static_cast<std::size_t>(size) * sizeof(rows) : 0);
}

std::uint64_t Collective::sent_bytes(int rank, int size) const noexcept {
  const auto elements =
      static_cast<std::uint64_t>(detail::product(spec.shape, 0, spec.shape.rank()));
  const auto own =
      static_cast<std::uint64_t>(detail::share_of(static_cast<std::int64_t>(elements), size, rank));
  const auto others = static_cast<std::uint64_t>(size - 1);
  const std::uint64_t bytes = size_of(spec.dtype);
  switch (kind) {
    case all_gather:
      return others * elements * bytes;
    case reduce_scatter:
      return (elements - own) * bytes;
    case gather_shares:
      return others * own * bytes;
    case broadcast:
      return rank == root ? others * elements * bytes : 0;
    case all_reduce:
    case reduce_to:
      break;
  }
  return (elements - own) * bytes + others * own * size_of(sum_dtype);
}

std::uint64_t Collective::messages(int size) const noexcept {
  return static_cast<std::uint64_t>(size - 1) * (kind == all_reduce || kind == reduce_to ? 2 : 1);
}

Collective detail::describe(const Spec& first, const Spec& part, const CollectiveAttributes& a) {
  const bool reduces = a.kind == Collective::all_reduce || a.kind == Collective::reduce_to ||
                       a.kind == Collective::reduce_scatter;
  const bool may_be_nan = a.op == ReduceOp::max && is_floating(part.dtype);
  return {.kind = a.kind,
          .op = a.op,
          .root = a.root,
          .adds = a.adds != 0,
          .spec = part,
          .sum_dtype = first.dtype,
          .name = a.name,
          .where = a.where,
          .in_order = a.adds != 0 ||
                      (reduces && (a.world->is_ordered() || is_half(part.dtype) || may_be_nan))};
}

Collective detail::describe(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const bool gathers = a.kind == Collective::gather_shares;
  return describe(context.inputs[0].spec,
                  gathers ? context.outputs[0].spec : context.inputs[a.adds ? 1 : 0].spec, a);
}

}  // namespace ebb
