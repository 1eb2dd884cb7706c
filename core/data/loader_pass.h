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

// One pass of a loader over its data. While the caller has one batch, a thread fills the next ones.
// Memory is allocated and let go only on the calling thread, at moments that do not depend on the
// thread's progress. So memory figures are the same without it, as on a simulated device.
class LoaderPass {
 public:
  // `order`: of the samples. The objects passed by reference must outlive the pass.
  LoaderPass(const Samples& samples, const DataLoaderOptions& options, BatchMemory& memory,
             std::vector<std::int64_t> order);
  ~LoaderPass();
  LoaderPass(const LoaderPass&) = delete;
  LoaderPass& operator=(const LoaderPass&) = delete;

  // Takes the batch at a position, made ahead or made now, and asks for the next ones ahead. Throws
  // if making it failed; then the next call makes it anew.
  Batch take(std::int64_t position);

 private:
  // A batch that is made ahead. It belongs to the thread from ask to done.
  struct Made {
    std::int64_t position = 0;
    Batch batch;
    std::exception_ptr failure;
  };
  // Resources for one batch being made.
  struct Lane {
    explicit Lane(Runtime& runtime) : stream(runtime) {}
    const LentStream stream;        // lent to one thread at a time
    std::optional<Staging> staged;  // if the device's memory is not the host's
    Made made;
  };
  Lane& lane(std::uint64_t number) noexcept { return lanes_[number % lanes_.size()]; }
  std::int64_t rows_at(std::int64_t position) const noexcept;
  std::span<const std::int64_t> samples_at(std::int64_t position) const noexcept;

  Made finish_first(bool& is_filled);
  Batch take_first();
  void ask_from(std::int64_t position);
  bool ask_for(std::int64_t position);
  bool has_thread();  // starts it if needed
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
  std::uint64_t first_ = 0, end_ = 0;  // asked for and not taken, in the order of positions
  std::int64_t next_position_ = 0;     // the next position to ask for
  std::unique_ptr<Background> background_;
};

// Number of batches in a pass over `samples` samples.
std::int64_t batches_of(std::int64_t samples, const DataLoaderOptions& options) noexcept;
// Number of batches made ahead at a time.
std::int64_t ahead_of(std::int64_t samples, const DataLoaderOptions& options) noexcept;

}  // namespace ebb::detail
