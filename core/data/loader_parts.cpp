#include <unistd.h>

#include <algorithm>

#include "ebb/core/data/loader_pass.h"

namespace ebb::detail {

namespace {
// Any holder of a batch, be it a tensor, a view or the tape, counts in the storage.
bool is_free(const Ref<Storage>& storage) noexcept { return storage->unique(); }
}  // namespace

BatchMemory::BatchMemory(const Samples& samples, std::int64_t rows, std::size_t slots,
                         const Device& device, const memory::Tag& tag)
    : device_(device), fields_(samples.specs()) {
  for (const Spec& field : fields_)
    requests_.push_back({with_rows(field, rows).bytes(), memory::Category::input, tag});
  slots_.resize(slots);
  for (Slot& slot : slots_)
    for (std::size_t field = 0; field < fields_.size(); ++field) slot.push_back(allocate(field));
}

std::optional<Batch> BatchMemory::take_free(std::int64_t rows) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::size_t at = (next_ + i) % slots_.size();
    const Slot& slot = slots_[at];
    if (!std::all_of(slot.begin(), slot.end(), is_free)) continue;
    next_ = (at + 1) % slots_.size();
    return batch_in(slot, rows);
  }
  return std::nullopt;
}

Batch BatchMemory::take(std::int64_t rows) {
  if (std::optional<Batch> free = take_free(rows)) return *std::move(free);
  Slot& slot = slots_[next_];
  // Allocate for all fields before changing the slot.
  Slot taken;
  for (std::size_t field = 0; field < slot.size(); ++field)
    taken.push_back(is_free(slot[field]) ? slot[field] : allocate(field));
  slot = std::move(taken);
  next_ = (next_ + 1) % slots_.size();
  return batch_in(slot, rows);
}

Ref<Storage> BatchMemory::allocate(std::size_t field) const {
  return make_ref<Storage>(device_, requests_[field]);
}

Batch BatchMemory::batch_in(const Slot& slot, std::int64_t rows) const {
  Batch batch;
  for (std::size_t field = 0; field < slot.size(); ++field) {
    slot[field]->begin_anew();
    slot[field]->bump_version();
    set_field(batch, field, make_concrete(with_rows(fields_[field], rows), slot[field]));
  }
  return batch;
}

Background::Background(std::function<void(std::uint64_t)> work)
    : process_(::getpid()), work_(std::move(work)), thread_([this] { run(); }) {}

Background::~Background() {
  asked_ = kOver;
  asked_.notify_one();
  is_forked() ? thread_.detach() : thread_.join();  // a forked process has no such thread
}

void Background::run() {
  for (std::uint64_t number = 0;; ++number) {
    std::uint64_t now = asked_;
    for (; now <= number; now = asked_) asked_.wait(now);
    if (now == kOver) return;
    work_(number);
    done_ = number + 1;
    done_.notify_one();
  }
}

void Background::ask() {
  ++asked_;
  asked_.notify_one();
}

bool Background::wait(std::uint64_t number) const {
  if (is_forked()) return false;
  for (std::uint64_t now = done_; now <= number; now = done_) done_.wait(now);
  return true;
}

bool Background::is_forked() const noexcept { return ::getpid() != process_; }

}  // namespace ebb::detail
