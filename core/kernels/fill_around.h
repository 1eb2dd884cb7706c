#pragma once
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb {

// Fills `out` with a number, by a device's fill kernel, before `in` is copied into it. Where `in`
// will lie in one piece, only the elements around it are filled.
inline Status fill_around(const KernelContext& context, const Buffer& in, const Buffer& out,
                          const StridedWalk& walk, double value, Kernel fill) noexcept {
  const Attributes attributes = FillAttributes{value};
  const auto fill_part = [&](std::int64_t begin, std::int64_t end) -> Status {
    if (begin >= end) return {};
    const Buffer part{
        out.as<std::byte>() + begin * static_cast<std::int64_t>(size_of(out.spec.dtype)),
        {out.spec.dtype, {end - begin}}};
    return fill(
        {.inputs = {}, .outputs = {&part, 1}, .attributes = &attributes, .stream = context.stream});
  };
  const std::int64_t all = out.elements(), placed = in.elements();
  if (walk.axes() > 0 || placed == 0) return fill_part(0, all);
  const std::int64_t first = walk.offset() / static_cast<std::int64_t>(size_of(out.spec.dtype));
  const Status status = fill_part(0, first);
  return status.ok() ? fill_part(first + placed, all) : status;
}

}  // namespace ebb
