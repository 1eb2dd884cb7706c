#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ebb/core/data/background.h"
#include "ebb/core/data/batch.h"
#include "ebb/core/data/batch_memory.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/staging.h"

namespace ebb::detail {

// One pass of a loader over its data. While the caller has one batch, a thread fills those that
// follow. Whatever is allocated, and whoever lets go of memory, does so on the calling thread, at
// moments that do not depend on how far that thread is; so figures are the same without it, which
// is how a simulated device runs.
class LoaderPass {
 public:
  // `order`: of the samples. What it is given by reference outlives it.
  LoaderPass(const Samples& samples, const DataLoaderOptions& options, BatchMemory& memory,
             std::vector<std::int64_t> order);
  ~LoaderPass();
  LoaderPass(const LoaderPass&) = delete;
  LoaderPass& operator=(const LoaderPass&) = delete;

  // The batch at a position, as it was made ahead, or else made here; those behind it are made
  // ahead from now on. Throws what making it throws: then the next call makes it anew.
  Batch take(std::int64_t position);

 private:
  // A batch that is made ahead: the thread's from when it is asked for to when it is done.
  struct Made {
    std::int64_t position = 0;
    Batch batch;
    std::exception_ptr failure;
  };
  // Where one is made.
  struct Lane {
    explicit Lane(Runtime& runtime) : stream(runtime) {}
    const LentStream stream;        // a stream is one thread's at a time
    std::optional<Staging> staged;  // where the device's memory is not the host's
    Made made;
  };
  Lane& lane(std::uint64_t number) noexcept { return lanes_[number % lanes_.size()]; }
  std::int64_t rows_at(std::int64_t position) const noexcept;
  std::span<const std::int64_t> samples_at(std::int64_t position) const noexcept;

  Made finish_first(bool& is_filled);
  Batch take_first();
  void ask_from(std::int64_t position);
  bool ask_for(std::int64_t position);
  bool has_thread();  // starts it
  void fill_here(const Batch& batch, std::int64_t position) const;
  void fill_ahead(Lane& lane) const noexcept;
  void copy_ahead(const Lane& lane, std::size_t offset, std::size_t field,
                  const Tensor& batch) const;

  const Samples& samples_;
  const DataLoaderOptions& options_;
  BatchMemory& memory_;
  const std::vector<std::int64_t> order_;
  const std::int64_t batches_;
  bool wants_thread_ = false;

  std::deque<Lane> lanes_;
  std::uint64_t first_ = 0, end_ = 0;  // asked for and not taken; in the order of positions
  std::int64_t next_position_ = 0;     // the next to be asked for
  std::unique_ptr<Background> background_;
};

// Batches in a pass over so many samples.
std::int64_t batches_of(std::int64_t samples, const DataLoaderOptions& options) noexcept;
// Of them, those that are made ahead at a time.
std::int64_t ahead_of(std::int64_t samples, const DataLoaderOptions& options) noexcept;

}  // namespace ebb::detail
