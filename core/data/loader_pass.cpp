#include "ebb/core/data/loader_pass.h"

#include <algorithm>
#include <system_error>

namespace ebb::detail {

namespace {

// Bytes of a batch on the host from which a thread pays: handing a batch over takes as long as
// gathering about 100 KiB.
constexpr std::size_t kWorthAThread = std::size_t{256} << 10;

// Offset of the next field in staging memory, aligned for values of any type.
std::size_t behind(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

void use_on(const Batch& batch, Stream* stream) {
  for_fields(batch, [&](const Tensor& field) { field.impl()->storage->use_on(stream); });
}

}  // namespace

std::int64_t batches_of(std::int64_t samples, const DataLoaderOptions& options) noexcept {
  const std::int64_t whole = samples / options.batch;
  return whole + (!options.drop_last && samples % options.batch != 0 ? 1 : 0);
}

std::int64_t most_rows(std::int64_t rows, const DataLoaderOptions& options) noexcept {
  const std::int64_t ranks = options.shard ? options.shard->size() : 1;
  return (rows + ranks - 1) / ranks;
}

std::int64_t ahead_of(std::int64_t samples, const DataLoaderOptions& options) noexcept {
  return std::clamp<std::int64_t>(batches_of(samples, options) - 1, 0, options.ahead);
}

LoaderPass::LoaderPass(const Samples& samples, const DataLoaderOptions& options,
                       BatchMemory& memory, std::vector<std::int64_t> order)
    : samples_(samples),
      options_(options),
      memory_(memory),
      order_(std::move(order)),
      batches_(batches_of(samples.size(), options)) {
  Runtime& runtime = options_.device.runtime();
  const auto rows =
      static_cast<std::size_t>(most_rows(std::min(options_.batch, samples.size()), options));
  std::size_t bytes = 0;
  for (const Spec& field : samples.specs()) bytes += behind(rows * field.bytes());
  wants_thread_ = runtime.has_streams() ||
                  (runtime.is_host() && (samples.are_read() || bytes >= kWorthAThread));
  for (std::int64_t i = ahead_of(samples.size(), options); i > 0; --i) {
    lanes_.emplace_back(runtime);
    if (runtime.has_streams())
      lanes_.back().staged.emplace(runtime, lanes_.back().stream.get(), bytes,
                                   tag("DataLoader", entry()));
  }
}

// The thread must end before the members it uses.
LoaderPass::~LoaderPass() { background_.reset(); }

std::span<const std::int64_t> LoaderPass::samples_at(std::int64_t position) const noexcept {
  const std::int64_t first = position * options_.batch;
  const std::int64_t rows = std::min(options_.batch, samples_.size() - first);
  const std::int64_t rank = options_.shard ? options_.shard->rank() : 0;
  const std::int64_t ranks = options_.shard ? options_.shard->size() : 1;
  const std::int64_t begin = rows * rank / ranks, end = rows * (rank + 1) / ranks;
  return std::span(order_).subspan(static_cast<std::size_t>(first + begin),
                                   static_cast<std::size_t>(end - begin));
}

std::int64_t LoaderPass::rows_at(std::int64_t position) const noexcept {
  return static_cast<std::int64_t>(samples_at(position).size());
}

Batch LoaderPass::take(std::int64_t position) {
  // Copies of an iterator advance separately, and each may skip batches.
  bool is_filled = false;
  while (first_ != end_ && lane(first_).made.position < position) finish_first(is_filled);
  Batch batch;
  if (first_ != end_ && lane(first_).made.position == position) {
    batch = take_first();
  } else {
    batch = memory_.take(rows_at(position));
    fill_here(batch, position);
  }
  next_position_ = std::max(next_position_, position + 1);
  while (end_ - first_ < lanes_.size() && next_position_ < batches_ && ask_for(next_position_))
    ++next_position_;
  return batch;
}

LoaderPass::Made LoaderPass::finish_first(bool& is_filled) {
  is_filled = background_ && background_->wait(first_);
  return std::exchange(lane(first_++).made, {});
}

Batch LoaderPass::take_first() {
  bool is_filled = false;
  Made made = finish_first(is_filled);
  if (!is_filled) {
    fill_here(made.batch, made.position);
    return made.batch;
  }
  if (made.failure) std::rethrow_exception(made.failure);
  // Wait now, not when the batch is read: by then a copy for another batch may have been queued,
  // which this one need not wait for.
  use_on(made.batch, options_.device.runtime().stream());
  return made.batch;
}

// Asks for a batch ahead only if a slot is free: it must not allocate. Otherwise the batch is made
// when due.
bool LoaderPass::ask_for(std::int64_t position) {
  std::optional<Batch> batch = memory_.take_free(rows_at(position));
  if (!batch) return false;
  Lane& next = lane(end_);
  try {
    // Queued here, so that the copy waits for earlier uses of this memory and not for the caller's
    // next work.
    if (has_thread()) use_on(*batch, next.stream.get());
  } catch (const std::exception&) {
    return false;  // the device fails again when the batch is due
  }
  next.made = {position, *std::move(batch), nullptr};
  if (background_) background_->ask();
  ++end_;
  return true;
}

bool LoaderPass::has_thread() {
  if (!wants_thread_ || background_) return wants_thread_;
  try {
    background_ =
        std::make_unique<Background>([this](std::uint64_t number) { fill_ahead(lane(number)); });
  } catch (const std::system_error&) {
    wants_thread_ = false;  // goes on without a thread
  }
  return wants_thread_;
}

void LoaderPass::fill_here(const Batch& batch, std::int64_t position) const {
  if (options_.device.is_simulated()) return;
  std::size_t at = 0;
  for_fields(batch, [&](const Tensor& field) {
    field.impl()->storage->write(0, field.bytes(),
                                 [&](void* to) { samples_.gather(at, samples_at(position), to); });
    ++at;
  });
}

void LoaderPass::fill_ahead(Lane& lane) const noexcept {
  try {
    if (lane.staged) lane.staged->wait();  // for the previous batch of this lane
    std::size_t at = 0, offset = 0;
    for_fields(lane.made.batch, [&](const Tensor& field) {
      void* const to = lane.staged ? lane.staged->data() + offset : detail::data(field);
      samples_.gather(at++, samples_at(lane.made.position), to);
      if (lane.staged) {
        const Storage& storage = *field.impl()->storage;
        lane.staged->copy_in(storage.data(), offset, field.bytes());
        storage.used_on(lane.stream.get());
      }
      offset += behind(field.bytes());
    });
  } catch (...) {
    lane.made.failure = std::current_exception();
  }
}

}  // namespace ebb::detail
