// Passes of a loader, and what they are made of.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "ebb/core/data/data_loader.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/staging.h"
#include "ebb/core/tensor/storage.h"

namespace ebb::detail {

// Source of a loader's batches: a data set or a SampleReader.
class Samples {
 public:
  explicit Samples(DataSet data) : data_(std::move(data)), size_(data_->size()) {
    for (const Tensor& field : data_->fields()) {
      specs_.push_back(with_rows(field.impl()->spec, 1));
      values_.push_back(values_of(field));
    }
  }
  // Takes a reader that has been checked.
  explicit Samples(SampleReader reader) : read_(std::move(reader.read)), size_(reader.size) {
    for (const Spec& field : reader.fields) {
      specs_.push_back({field.dtype, {1}});
      for (const std::int64_t size : field.shape.dims()) specs_.back().shape.push_back(size);
    }
  }

  std::int64_t size() const noexcept { return size_; }
  // Spec of one sample of each field: [1, ...].
  const std::vector<Spec>& specs() const noexcept { return specs_; }
  bool are_read() const noexcept { return !data_; }
  // Writes one field of these samples, one behind the other.
  void gather(std::size_t field, std::span<const std::int64_t> rows, void* to) const {
    const std::size_t bytes = specs_[field].bytes();
    if (data_) return gather_rows(values_[field].data(), bytes, rows, to);
    auto* out = static_cast<std::byte*>(to);
    for (const std::int64_t row : rows) {
      read_(row, field, out);
      out += bytes;
    }
  }

 private:
  std::optional<DataSet> data_;  // or read_
  decltype(SampleReader::read) read_;
  std::int64_t size_ = 0;
  std::vector<Spec> specs_;
  std::vector<HostView> values_;  // of the data set's fields
};

// Memory for a number of batches, used again and again, in slots that are allocated on
// construction. A batch that somebody still refers to keeps its memory.
class BatchMemory {
 public:
  // Batches of up to `rows` samples. Throws OutOfMemory.
  BatchMemory(const Samples& samples, std::int64_t rows, std::size_t slots, const Device& device,
              const memory::Tag& tag);

  // A batch without values in a slot that nobody refers to, or nothing if all slots are in use.
  std::optional<Batch> take_free(std::int64_t rows);
  // Like take_free(), but if all slots are in use, one gets new memory. Throws OutOfMemory, with
  // nothing changed.
  Batch take(std::int64_t rows);

 private:
  using Slot = std::vector<Ref<Storage>>;  // one for each field
  Ref<Storage> allocate(std::size_t field) const;
  Batch batch_in(const Slot& slot, std::int64_t rows) const;

  const Device device_;
  std::vector<Spec> fields_;
  std::vector<memory::Request> requests_;  // for each field
  std::vector<Slot> slots_;
  std::size_t next_ = 0;  // the slot taken longest ago
};

// A worker thread that does pieces of work in the order in which they are asked for, and sleeps
// when there is none. Used by one thread at a time.
class Background {
 public:
  // work(number), counted from 0, does one piece; it must not throw. Throws std::system_error if no
  // thread can be started.
  explicit Background(std::function<void(std::uint64_t number)> work);
  // Waits for the piece in progress and drops pieces that have not begun.
  ~Background();

  // Asks for the next piece.
  void ask();
  // Waits for piece `number` and returns true. Returns false if it will never be done: this process
  // was forked, and the thread is the parent's.
  bool wait(std::uint64_t number) const;

 private:
  static constexpr std::uint64_t kOver = ~std::uint64_t{0};

  void run();
  bool is_forked() const noexcept;

  const int process_;
  const std::function<void(std::uint64_t)> work_;
  std::atomic<std::uint64_t> asked_ = 0;  // pieces; kOver: there are no more
  std::atomic<std::uint64_t> done_ = 0;
  std::thread thread_;
};

// One pass of a loader over its data. While the caller has one batch, a thread fills the next ones.
// Memory is allocated and let go only on the calling thread, at moments that do not depend on the
// thread's progress. So memory figures are the same without it, as on a simulated device.
class LoaderPass {
 public:
  // `order`: of the samples. The objects passed by reference must outlive the pass.
  LoaderPass(const Samples& samples, const DataLoaderOptions& options, BatchMemory& memory,
             std::vector<std::int64_t> order);
  ~LoaderPass();

  // Takes the batch at a position, made ahead or made now, and asks for the next ones ahead. Throws
  // if making it failed; then the next call makes it anew.
  Batch take(std::int64_t position);
  // Samples of the batch at a position that are this rank's.
  std::int64_t rows_at(std::int64_t position) const noexcept;

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
  std::span<const std::int64_t> samples_at(std::int64_t position) const noexcept;

  Made finish_first(bool& is_filled);
  Batch take_first();
  bool ask_for(std::int64_t position);
  bool has_thread();  // starts it if needed
  void fill_here(const Batch& batch, std::int64_t position) const;
  void fill_ahead(Lane& lane) const noexcept;

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
// Most samples that this rank has of a batch of `rows`.
std::int64_t most_rows(std::int64_t rows, const DataLoaderOptions& options) noexcept;
// Number of batches made ahead at a time.
std::int64_t ahead_of(std::int64_t samples, const DataLoaderOptions& options) noexcept;

}  // namespace ebb::detail
