#include "ebb/core/kernels/slice.h"

#include <cstring>

#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
namespace {

// A tensor seen as [outer, size, inner], of which the index along the middle is meant.
struct Slice {
  std::int64_t outer = 1, size = 1, index = 0;
  std::int64_t inner_bytes = 0;

  Slice(const Spec& spec, const SelectAttributes& attributes) noexcept {
    const int rank = spec.shape.rank();
    const int axis =
        static_cast<int>(attributes.axis < 0 ? attributes.axis + rank : attributes.axis);
    std::int64_t inner = 1;
    for (int i = 0; i < axis; ++i) outer *= spec.shape[i];
    for (int i = axis + 1; i < rank; ++i) inner *= spec.shape[i];
    size = spec.shape[axis];
    index = attributes.index < 0 ? attributes.index + size : attributes.index;
    inner_bytes = inner * static_cast<std::int64_t>(size_of(spec.dtype));
  }
};

}  // namespace

Status select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Slice slice(in.spec, context.attribute<SelectAttributes>());
  const auto* from = in.as<const std::byte>() + slice.index * slice.inner_bytes;
  auto* to = out.as<std::byte>();
  with_width(slice.inner_bytes, [&](auto width) {
    for_pieces(slice.outer, rows_per_piece(slice.inner_bytes / 4),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   std::memcpy(to + i * slice.inner_bytes,
                               from + i * slice.size * slice.inner_bytes, width);
               });
  });
  return {};
}

Status select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Slice slice(out.spec, context.attribute<SelectAttributes>());
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  const std::int64_t row_bytes = slice.size * slice.inner_bytes;
  with_width(slice.inner_bytes, [&](auto width) {
    for_pieces(slice.outer, rows_per_piece(row_bytes / 4),
               [&](std::int64_t begin, std::int64_t end) {
                 if (begin < end)
                   std::memset(to + begin * row_bytes, 0,
                               static_cast<std::size_t>((end - begin) * row_bytes));
                 for (std::int64_t i = begin; i < end; ++i)
                   std::memcpy(to + i * row_bytes + slice.index * slice.inner_bytes,
                               from + i * slice.inner_bytes, width);
               });
  });
  return {};
}

Status size(const KernelContext& context) {
  const auto axis = static_cast<int>(context.attribute<SizeAttributes>().axis);
  *context.outputs[0].as<std::int64_t>() = context.inputs[0].spec.shape[axis];
  return {};
}

}  // namespace ebb::cpu
