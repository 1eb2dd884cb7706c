// Loops over [batch, channels, inner], shared by the kernels of normalisations.
#pragma once
#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/reduce_loops.h"

namespace ebb::cpu {

// A sum of blocks: short runs in the element type, added up in double.
template <class T>
class RunningSum {
 public:
  void add(const Block<T>& x) noexcept {
    run_ += x;
    if (++count_ == kRun) flush();
  }
  double total() noexcept {
    flush();
    return total_;
  }

 private:
  void flush() noexcept {
    total_ += sum(run_);
    run_ = 0;
    count_ = 0;
  }
  Block<T> run_ = 0;
  std::int64_t count_ = 0;
  double total_ = 0;
};

// A number for each channel, or one for all. For blocks of neighbouring channels (inner = 1) or of
// one channel.
template <class T>
struct PerChannel {
  const T* values;  // or null
  bool neighbours;
  T none;

  T one(std::int64_t channel) const noexcept { return values == nullptr ? none : values[channel]; }
  Block<T> at(std::int64_t channel, std::int64_t count) const noexcept {
    if (values == nullptr) return none;
    return neighbours ? load_some(values + channel, count) : Block<T>(values[channel]);
  }
};

// Calls body(offset, count) for the blocks of `inner` neighbouring elements.
template <class T, class Body>
inline void for_plane(std::int64_t begin, std::int64_t inner, const Body& body) noexcept {
  std::int64_t i = 0;
  for (; i + kBlock<T> <= inner; i += kBlock<T>) body(begin + i, kBlock<T>);
  if (i < inner) body(begin + i, inner - i);
}

// Calls of(channel, count, each) for the channels [from, to) of a batch row, or for blocks of
// neighbouring ones; each(body) then calls body(offset, count) for their blocks. So the numbers of
// a channel are read once and stay in registers.
template <class T, class Of>
inline void for_blocks(const NormView& view, std::int64_t row, std::int64_t from, std::int64_t to,
                       const Of& of) noexcept {
  if (view.inner == 1) {
    for_plane<T>(from, to - from, [&](std::int64_t c, std::int64_t count) {
      of(c, count, [&](const auto& body) { body(row * view.channels + c, count); });
    });
    return;
  }
  for (std::int64_t c = from; c < to; ++c)
    of(c, kBlock<T>, [&](const auto& body) {
      for_plane<T>((row * view.channels + c) * view.inner, view.inner, body);
    });
}

// for_blocks over all batch rows and channels, by all threads.
template <class T, class Of>
inline void for_all_blocks(const NormView& view, const Of& of) {
  const std::int64_t cut = view.inner == 1 ? 1 : view.channels;  // pieces of a row
  const std::int64_t channels = view.inner == 1 ? view.channels : 1;
  for_items(view.batch * cut, rows_per_piece(channels * view.inner), [&](std::int64_t i) {
    const std::int64_t from = i % cut * channels;
    for_blocks<T>(view, i / cut, from, from + channels, of);
  });
}

// Cuts sums over batch and inner into parts of `rows` batch rows, at most 16 of them, whose sums
// lie in the workspace.
struct ChannelSums {
  std::int64_t rows, parts;

  explicit ChannelSums(const NormView& view) noexcept
      : rows(std::max(rows_per_piece(view.channels * view.inner),
                      divide_up(view.batch, std::int64_t{16}))),
        parts(std::max<std::int64_t>(1, divide_up(view.batch, rows))) {}
  std::int64_t doubles(const NormView& view, int sums) const noexcept {
    return parts * sums * view.channels;
  }
  // Adds all parts to the first.
  void add_parts(const NormView& view, double* totals, int sums) const noexcept {
    const std::int64_t count = sums * view.channels;
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t j = 0; j < count; ++j) totals[j] += totals[part * count + j];
  }
};

// totals[k * channels + c] = the sum over batch and inner of the terms that body(offset, count,
// sums) adds to sums[k], where of(c, count, each) calls each(body) as for for_blocks. Elements
// beyond `count` get 0 or, with inner = 1, anything. totals has ChannelSums::doubles(kSums)
// elements. The order of additions depends on the shape alone.
template <class T, int kSums, class Of>
void channel_sums(const NormView& view, double* totals, const Of& of) {
  const ChannelSums cut(view);
  const bool neighbours = view.inner == 1;
  const std::int64_t strip =
      neighbours
          ? 4 * kBlock<T>
          : std::clamp<std::int64_t>(view.channels, 1, rows_per_piece(cut.rows * view.inner));
  // The rows, and the elements of a plane, whose sums are in T.
  const std::int64_t most = kRun * kBlock<T>,
                     row_run = neighbours ? kRun
                                          : std::max<std::int64_t>(
                                                1, kRun / 4 /
                                                       std::max<std::int64_t>(
                                                           1, divide_up(view.inner, kBlock<T>)));
  const std::int64_t strips = divide_up(view.channels, strip);
  const auto piece = [&](std::int64_t part, std::int64_t from, std::int64_t to) {
    double* const sums = totals + part * kSums * view.channels;
    for (int k = 0; k < kSums; ++k) std::fill_n(sums + k * view.channels + from, to - from, 0.0);
    const std::int64_t last = std::min(view.batch, (part + 1) * cut.rows);
    for (std::int64_t row = part * cut.rows; row < last; row += row_run) {
      const std::int64_t end = std::min(last, row + row_run);
      if (neighbours) {
        for_plane<T>(from, to - from, [&](std::int64_t c, std::int64_t count) {
          Block<T> runs[kSums];
          std::fill_n(runs, kSums, Block<T>(T(0)));
          of(c, count, [&](const auto& add) {
            for (std::int64_t r = row; r < end; ++r) add(r * view.channels + c, count, runs);
          });
          for (int k = 0; k < kSums; ++k) {
            T elements[kBlock<T>];
            store(elements, runs[k]);
            for (std::int64_t j = 0; j < count; ++j)
              sums[k * view.channels + c + j] += static_cast<double>(elements[j]);
          }
        });
        continue;
      }
      for (std::int64_t c = from; c < to; ++c)
        of(c, kBlock<T>, [&](const auto& add) {
          for (std::int64_t i = 0; i < view.inner; i += most) {
            Block<T> runs[kSums];
            std::fill_n(runs, kSums, Block<T>(T(0)));
            for (std::int64_t r = row; r < end; ++r)
              for_plane<T>((r * view.channels + c) * view.inner + i, std::min(most, view.inner - i),
                           [&](std::int64_t at, std::int64_t count) { add(at, count, runs); });
            for (int k = 0; k < kSums; ++k) sums[k * view.channels + c] += sum(runs[k]);
          }
        });
    }
  };
  for_items(cut.parts * strips, neighbours ? rows_per_piece(cut.rows * strip) : 1,
            [&](std::int64_t i) {
              const std::int64_t from = i % strips * strip;
              piece(i / strips, from, std::min(view.channels, from + strip));
            });
  cut.add_parts(view, totals, kSums);
}

// One over the deviation.
inline double scale_to_one(double squares, double terms, double epsilon) noexcept {
  return 1 / std::sqrt(squares / terms + epsilon);
}

}  // namespace ebb::cpu
