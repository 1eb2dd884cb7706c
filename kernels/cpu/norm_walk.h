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

  Block<T> at(std::int64_t channel, std::int64_t count) const noexcept {
    if (values == nullptr) return none;
    return neighbours ? load_some(values + channel, count) : Block<T>(values[channel]);
  }
};

// Calls body(offset, channel, count) for the blocks of channels [from, to) of a batch row.
template <class T, class Body>
inline void for_blocks(const NormView& view, std::int64_t row, std::int64_t from, std::int64_t to,
                       const Body& body) noexcept {
  if (view.inner == 1) {
    for (std::int64_t c = from; c < to; c += kBlock<T>)
      body(row * view.channels + c, c, std::min(kBlock<T>, to - c));
    return;
  }
  for (std::int64_t c = from; c < to; ++c) {
    const std::int64_t begin = (row * view.channels + c) * view.inner;
    for (std::int64_t i = 0; i < view.inner; i += kBlock<T>)
      body(begin + i, c, std::min(kBlock<T>, view.inner - i));
  }
}

// for_blocks over all batch rows and channels, by all threads.
template <class T, class Body>
inline void for_all_blocks(const NormView& view, const Body& body) {
  const std::int64_t cut = view.inner == 1 ? 1 : view.channels;  // pieces of a row
  const std::int64_t channels = view.inner == 1 ? view.channels : 1;
  for_items(view.batch * cut, rows_per_piece(channels * view.inner), [&](std::int64_t i) {
    const std::int64_t from = i % cut * channels;
    for_blocks<T>(view, i / cut, from, from + channels, body);
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
};

// totals[k * channels + c] = the sum over batch and inner of term(begin, row, c, count)[k]. A term
// gives kSums blocks; elements beyond `count` are 0 or, with inner = 1, anything. totals has
// ChannelSums::doubles(kSums) elements. The order of additions depends on the shape alone.
template <class T, int kSums, class Term>
void channel_sums(const NormView& view, double* totals, const Term& term) {
  constexpr std::int64_t kBlocks = 4, kStep = kBlocks * kBlock<T>;
  const ChannelSums cut(view);
  const bool neighbours = view.inner == 1;
  const std::int64_t strips = neighbours ? divide_up(view.channels, kStep) : view.channels;
  const auto sums_of = [&](std::int64_t part, int k) {
    return totals + (part * kSums + k) * view.channels;
  };
  const auto columns = [&](std::int64_t part, std::int64_t c, std::int64_t begin,
                           std::int64_t end) {
    const std::int64_t width = std::min(kStep, view.channels - c);
    for (int k = 0; k < kSums; ++k) std::fill_n(sums_of(part, k) + c, width, 0.0);
    for (std::int64_t row = begin; row < end;) {
      Block<T> runs[kSums][kBlocks];
      for (auto& run : runs) std::fill_n(run, kBlocks, Block<T>(T(0)));
      for (const std::int64_t stop = std::min(end, row + kRun); row < stop; ++row)
        for (std::int64_t i = 0; i < kBlocks && i * kBlock<T> < width; ++i) {
          const std::int64_t at = c + i * kBlock<T>;
          const auto terms =
              term(row * view.channels + at, row, at, std::min(kBlock<T>, view.channels - at));
          for (int k = 0; k < kSums; ++k) runs[k][i] += terms.sums[k];
        }
      for (int k = 0; k < kSums; ++k) {
        T elements[kStep];
        for (std::int64_t i = 0; i < kBlocks; ++i) store(elements + i * kBlock<T>, runs[k][i]);
        for (std::int64_t j = 0; j < width; ++j)
          sums_of(part, k)[c + j] += static_cast<double>(elements[j]);
      }
    }
  };
  const auto one_channel = [&](std::int64_t part, std::int64_t c, std::int64_t begin,
                               std::int64_t end) {
    RunningSum<T> sums[kSums];
    for (std::int64_t row = begin; row < end; ++row)
      for_blocks<T>(view, row, c, c + 1, [&](std::int64_t at, std::int64_t, std::int64_t count) {
        const auto terms = term(at, row, c, count);
        for (int k = 0; k < kSums; ++k) sums[k].add(terms.sums[k]);
      });
    for (int k = 0; k < kSums; ++k) sums_of(part, k)[c] = sums[k].total();
  };
  const std::int64_t item = cut.rows * (neighbours ? kStep : view.inner);
  for_items(cut.parts * strips, rows_per_piece(item), [&](std::int64_t i) {
    const std::int64_t part = i / strips, strip = i % strips;
    const std::int64_t first = part * cut.rows, last = std::min(view.batch, first + cut.rows);
    if (neighbours)
      columns(part, strip * kStep, first, last);
    else
      one_channel(part, strip, first, last);
  });
  for (std::int64_t part = 1; part < cut.parts; ++part)
    for (std::int64_t j = 0; j < kSums * view.channels; ++j)
      totals[j] += totals[part * kSums * view.channels + j];
}

template <class T, int kSums>
struct Terms {
  Block<T> sums[kSums];
};

// One over the deviation.
inline double scale_to_one(double squares, double terms, double epsilon) noexcept {
  return 1 / std::sqrt(squares / terms + epsilon);
}

}  // namespace ebb::cpu
