#include "ebb/core/kernels/collective.h"

#include "ebb/core/kernels/carver.h"

namespace ebb {

Status Collective::check() const noexcept {
  if (elements() <= INT32_MAX) return {};
  return Status::refuse("sends at most 2147483647 elements at once");
}

std::size_t Collective::workspace_bytes(int size) const noexcept {
  if (!in_order || size == 1) return 0;
  const auto parts = static_cast<std::size_t>(detail::share_of(elements(), size, 0) * size);
  return aligned_bytes(parts * size_of(spec.dtype)) +
         (adds ? static_cast<std::size_t>(size) * sizeof(rows) : 0);
}

std::uint64_t Collective::sent_bytes(int rank, int size) const noexcept {
  const std::int64_t own = detail::share_of(elements(), size, rank), others = size - 1;
  const auto bytes = [](std::int64_t count, DType dtype) {
    return static_cast<std::uint64_t>(count) * size_of(dtype);
  };
  if (kind == broadcast) return rank == root ? bytes(others * elements(), spec.dtype) : 0;
  return (kind == all_gather ? 0 : bytes(elements() - own, spec.dtype)) +
         (kind == reduce_scatter ? 0 : bytes(others * own, sum_dtype));
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
  const Buffer& part = context.inputs[a.adds ? 1 : 0];
  return describe(context.inputs[0].spec,
                  a.kind == Collective::all_gather ? context.outputs[0].spec : part.spec, a);
}

Status detail::add_parts(Kernel accumulate, KernelContext context, const Collective& collective,
                         const void* from, void* to, std::int64_t count,
                         std::span<const std::int64_t> rows) {
  Buffer part{const_cast<void*>(from), {collective.spec.dtype, {count}}};
  for (const std::int64_t& of_rank : rows) {
    const Buffer inputs[] = {{to, {collective.sum_dtype, {count}}},
                             part,
                             {const_cast<std::int64_t*>(&of_rank), {DType::i64, {}}}};
    context.inputs = inputs;
    context.outputs = {inputs, 1};
    if (const Status status = accumulate(context); !status.ok()) return status;
    part.data = part.as<std::byte>() + part.spec.bytes();
  }
  return {};
}

}  // namespace ebb
