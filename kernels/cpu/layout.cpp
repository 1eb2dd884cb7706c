#include <array>
#include <cstring>
#include <type_traits>

#include "ebb/core/kernels/layout.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/kernels/update.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/transpose.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
namespace {

// The offsets in the input at which rows begin, from the index-th row on. A row consists of the
// axes of the walk before `first`.
class Rows {
 public:
  Rows(const StridedWalk& walk, int first, std::int64_t index) noexcept
      : walk_(walk), first_(first), offset_(walk.offset()) {
    for (int axis = first; axis < walk.axes(); ++axis) {
      index_[axis] = index % walk.size(axis);
      index /= walk.size(axis);
      offset_ += index_[axis] * walk.stride(axis);
    }
  }
  std::int64_t offset() const noexcept { return offset_; }
  void next() noexcept {
    for (int axis = first_; axis < walk_.axes(); ++axis) {
      offset_ += walk_.stride(axis);
      if (++index_[axis] < walk_.size(axis)) return;
      offset_ -= index_[axis] * walk_.stride(axis);
      index_[axis] = 0;
    }
  }

 private:
  const StridedWalk& walk_;
  const int first_;
  std::int64_t offset_;
  std::int64_t index_[kMaxRank] = {};
};

// Bytes that one thread copies alone.
constexpr std::int64_t kPieceBytes = 128 * 1024;

// Calls copy(at, plain, bytes) for all units, large ones in parts. `at` is the offset in the
// strided array, `plain` in the contiguous one.
template <class Copy>
void for_units(const StridedWalk& walk, const Copy& copy) {
  const std::int64_t unit = walk.unit(), parts = divide_up(unit, kPieceBytes);
  if (parts == 1)
    return for_pieces(walk.count(), kPieceBytes / unit, [&](std::int64_t begin, std::int64_t end) {
      Rows units(walk, 0, begin);
      for (std::int64_t i = begin; i < end; ++i, units.next()) copy(units.offset(), i * unit, unit);
    });
  for_pieces(walk.count() * parts, 1, [&](std::int64_t i, std::int64_t) {
    const std::int64_t from = i % parts * kPieceBytes;
    copy(Rows(walk, 0, i / parts).offset() + from, i / parts * unit + from,
         std::min(kPieceBytes, unit - from));
  });
}

// Constant steps make vectors of the loop.
template <int kUnit, class Stride>
void copy_steps(const std::byte* from, std::byte* to, std::int64_t count, Stride stride) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * kUnit, from + i * stride, kUnit);
}
template <int kUnit>
void copy_row(const std::byte* from, std::byte* to, std::int64_t count,
              std::int64_t stride) noexcept {
  if (stride == 0) {
    std::array<std::byte, kUnit> one;
    std::memcpy(one.data(), from, kUnit);
    return copy_steps<kUnit>(one.data(), to, count, std::integral_constant<int, 0>{});
  }
  if (stride == -kUnit)
    return copy_steps<kUnit>(from, to, count, std::integral_constant<int, -kUnit>{});
  copy_steps<kUnit>(from, to, count, stride);
}

// Copies rows of the output unit by unit, the longer ones in parts.
template <int kUnit>
void copy_rows(const std::byte* from, std::byte* to, const StridedWalk& walk) {
  const std::int64_t n = walk.size(0), stride = walk.stride(0);
  const std::int64_t parts = divide_up(n, kPieceElements), length = divide_up(n, parts);
  for_pieces(walk.count(1) * parts, rows_per_piece(length),
             [&](std::int64_t begin, std::int64_t end) {
               Rows rows(walk, 1, begin / parts);
               std::byte* target = to + begin / parts * n * kUnit;
               for (std::int64_t i = begin, part = begin % parts; i < end; ++i) {
                 const std::int64_t at = part * length;
                 copy_row<kUnit>(from + rows.offset() + at * stride, target + at * kUnit,
                                 std::min(length, n - at), stride);
                 if (++part < parts) continue;
                 part = 0;
                 target += n * kUnit;
                 rows.next();
               }
             });
}

// Transposes the matrices of axis 0 and `across` in blocks that go down through the input, whose
// rows are axis 0 of the walk and contiguous along `across`. A block has enough columns that a page
// of the input is opened once for all of them, and few enough that the output's pages stay open.
template <int kUnit>
void copy_planes(const std::byte* from, std::byte* to, const StridedWalk& walk, int across) {
  constexpr std::int64_t kColumns = 2048 / kUnit;
  const std::int64_t rows = walk.size(0), columns = walk.size(across);
  const std::int64_t height = 64 / kUnit * std::max<std::int64_t>(1, kColumns / columns);
  Plane plane{walk.stride(0), kUnit};
  for (int axis = 0; axis < across; ++axis) plane.to_stride *= walk.size(axis);
  const std::int64_t down = divide_up(rows, height), blocks = down * divide_up(columns, kColumns);
  const std::int64_t planes = walk.count() / (rows * columns);
  for_items(planes * blocks,
            std::max<std::int64_t>(1, kPieceElements / (height * std::min(columns, kColumns))),
            [&](std::int64_t i) {
              // Offsets of the matrix in input and output.
              std::int64_t at = walk.offset(), out = 0, step = kUnit, rest = i / blocks;
              for (int axis = 0; axis < walk.axes(); step *= walk.size(axis++)) {
                if (axis == 0 || axis == across) continue;
                at += rest % walk.size(axis) * walk.stride(axis);
                out += rest % walk.size(axis) * step;
                rest /= walk.size(axis);
              }
              const std::int64_t row = i % blocks % down * height,
                                 column = i % blocks / down * kColumns;
              copy_block<kUnit>(from + at + row * plane.from_stride + column * kUnit,
                                to + out + column * plane.to_stride + row * kUnit,
                                std::min(height, rows - row), std::min(kColumns, columns - column),
                                plane);
            });
}

// For core/kernels/layout_kernels.inc, which says what they do.
Status strided_copy(const KernelContext&, const Buffer& in, const Buffer& out,
                    const StridedWalk& walk) {
  if (out.elements() == 0) return {};
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  const int across = walk.contiguous_axis();
  with_width(walk.axes() == 0 ? 0 : walk.unit(), [&](auto width) {
    if constexpr (width == 0) {
      for_units(walk, [=](std::int64_t at, std::int64_t plain, std::int64_t bytes) {
        std::memcpy(to + plain, from + at, static_cast<std::size_t>(bytes));
      });
    } else if (across > 0 && walk.stride(0) != 0) {
      copy_planes<width>(from, to, walk, across);
    } else {
      copy_rows<width>(from, to, walk);
    }
  });
  return {};
}

Status strided_store(const KernelContext&, const Buffer& in, const Buffer& out,
                     const StridedWalk& walk) {
  if (in.elements() == 0) return {};
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  with_width(walk.unit(), [&](auto width) {
    for_units(walk, [=](std::int64_t at, std::int64_t plain, std::int64_t bytes) {
      std::memcpy(to + at, from + plain, static_cast<std::size_t>(width > 0 ? width : bytes));
    });
  });
  return {};
}

Status strided_store_at(const KernelContext& context, const Buffer& in, const Buffer& out,
                        const StridedWalk& walk, const Buffer& begin, std::int64_t last) {
  const std::int64_t first = *begin.as<const std::int64_t>();
  if (first < 0 || first > last) return Status::refuse("was given an index out of range");
  if (in.elements() == 0) return {};
  const Buffer from_there{out.as<std::byte>() + (first - 1) * walk.offset(), out.spec};
  return strided_store(context, in, from_there, walk);
}

}  // namespace

#include "ebb/core/kernels/layout_kernels.inc"

}  // namespace ebb::cpu
