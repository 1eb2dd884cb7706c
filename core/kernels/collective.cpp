#include "ebb/core/kernels/collective.h"

namespace ebb {

std::size_t Collective::workspace_bytes(int size) const noexcept {
  if (!combine) return 0;
  const std::int64_t elements = detail::product(spec.shape, 0, spec.shape.rank());
  return static_cast<std::size_t>(detail::share_of(elements, size, 0) * size) * size_of(spec.dtype);
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

}  // namespace ebb
