#include "ebb/core/data/batch_memory.h"

#include <utility>

#include "ebb/core/data/host_values.h"

namespace ebb::detail {

namespace {
memory::Request request_for(const Spec& spec, std::int64_t rows, const memory::Tag& tag) {
  return {with_rows(spec, rows).bytes(), memory::Category::input, tag};
}

// Any holder of a batch, be it a tensor, a view of one or the tape, counts in the storage.
bool is_free(const Ref<Storage>& storage) noexcept { return storage->unique(); }
}  // namespace

BatchMemory::BatchMemory(const DataSet& data, std::int64_t rows, std::size_t slots,
                         const Device& device, const memory::Tag& tag)
    : input_(data.inputs().impl()->spec),
      target_(data.targets().impl()->spec),
      device_(device),
      input_request_(request_for(input_, rows, tag)),
      target_request_(request_for(target_, rows, tag)) {
  slots_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    Ref<Storage> input = allocate(input_request_);
    slots_.push_back({std::move(input), allocate(target_request_)});
  }
}

std::optional<Batch> BatchMemory::take_free(std::int64_t rows) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::size_t at = (next_ + i) % slots_.size();
    const Slot& slot = slots_[at];
    if (!is_free(slot.input) || !is_free(slot.target)) continue;
    next_ = (at + 1) % slots_.size();
    return batch_in(slot, rows);
  }
  return std::nullopt;
}

Batch BatchMemory::take(std::int64_t rows) {
  if (std::optional<Batch> free = take_free(rows)) return *std::move(free);
  Slot& slot = slots_[next_];
  // Both before either is kept.
  Ref<Storage> input = is_free(slot.input) ? slot.input : allocate(input_request_);
  Ref<Storage> target = is_free(slot.target) ? slot.target : allocate(target_request_);
  slot = {std::move(input), std::move(target)};
  next_ = (next_ + 1) % slots_.size();
  return batch_in(slot, rows);
}

Ref<Storage> BatchMemory::allocate(const memory::Request& request) const {
  return make_ref<Storage>(device_, request);
}

Batch BatchMemory::batch_in(const Slot& slot, std::int64_t rows) const {
  for (const Ref<Storage>& storage : {slot.input, slot.target}) {
    storage->begin_anew();
    storage->bump_version();
  }
  return {make_concrete(with_rows(input_, rows), slot.input),
          make_concrete(with_rows(target_, rows), slot.target)};
}

}  // namespace ebb::detail
