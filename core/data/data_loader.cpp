#include "ebb/core/data/data_loader.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/data/permutation.h"

namespace ebb {

namespace {

constexpr const char* kWhat = "DataLoader";

// Memory of one batch of a tensor's rows, filled again and again.
class Slot {
 public:
  Slot(Tensor from, std::int64_t rows, const Device& device, const memory::Tag& tag)
      : from_(std::move(from)),
        device_(device),
        request_{detail::with_rows(from_.impl()->spec, rows).bytes(), memory::Category::input, tag},
        storage_(allocate()) {}

  // A tensor of `rows` rows with the values of these samples; without values on a simulated device.
  // Throws OutOfMemory where the last one is still held and there is no room for another.
  Tensor fill(std::int64_t rows, std::span<const std::int64_t> samples) {
    // Any other holder, be it a tensor, a view of one or the tape, counts in the storage.
    if (!storage_->unique()) storage_ = allocate();
    storage_->begin_anew();
    Tensor batch = detail::make_concrete(detail::with_rows(from_.impl()->spec, rows), storage_);
    const std::size_t row_bytes = detail::with_rows(from_.impl()->spec, 1).bytes();
    storage_->write(0, batch.bytes(), [&](void* to) {
      detail::gather_rows(detail::values_of(from_).data(), row_bytes, samples, to);
    });
    storage_->bump_version();
    return batch;
  }

 private:
  detail::Ref<detail::Storage> allocate() const {
    return detail::make_ref<detail::Storage>(device_, request_);
  }

  const Tensor from_;
  const Device device_;
  const memory::Request request_;
  detail::Ref<detail::Storage> storage_;
};

}  // namespace

struct DataLoader::State {
  State(DataSet set, const DataLoaderOptions& chosen, CallSite site)
      : data(std::move(set)),
        options(chosen),
        slot_rows(std::min(options.batch, data.size())),
        input(data.inputs(), slot_rows, options.device, detail::tag(kWhat, site)),
        target(data.targets(), slot_rows, options.device, detail::tag(kWhat, site)) {}

  std::int64_t batches() const noexcept {
    const std::int64_t whole = data.size() / options.batch;
    return whole + (!options.drop_last && data.size() % options.batch != 0 ? 1 : 0);
  }

  // Where a loader stands is {options.shuffle, passes, position}: these say what follows.
  const DataSet data;
  const DataLoaderOptions options;
  const std::int64_t slot_rows;  // no more than there are samples
  Slot input;
  Slot target;
  std::uint64_t passes = 0;  // begun so far
};

struct DataLoader::Iterator::Pass {
  std::vector<std::int64_t> order;
};

DataLoader::DataLoader(DataSet data, const DataLoaderOptions& options, CallSite site) {
  if (options.batch < 1)
    throw Error(detail::message(
        kWhat, "batch must be at least 1, not " + std::to_string(options.batch), site));
  if (data.size() == 0) throw Error(detail::message(kWhat, "the data set is empty", site));
  state_ = std::make_shared<State>(std::move(data), options, site);
}

std::int64_t DataLoader::size() const noexcept { return state_->batches(); }

DataLoader::Iterator DataLoader::begin() { return Iterator(state_); }

DataLoader::Iterator::Iterator(std::shared_ptr<State> state) : state_(std::move(state)) {
  const std::int64_t count = state_->data.size();
  Pass pass;
  if (state_->options.shuffle) {
    pass.order = detail::permutation(count, state_->options.shuffle->value,
                                     detail::Purpose::shuffle, state_->passes);
  } else {
    pass.order.resize(static_cast<std::size_t>(count));
    std::iota(pass.order.begin(), pass.order.end(), std::int64_t{0});
  }
  pass_ = std::make_shared<const Pass>(std::move(pass));
  ++state_->passes;
}

bool DataLoader::Iterator::at_end() const noexcept { return position_ >= state_->batches(); }

Batch DataLoader::Iterator::operator*() const {
  if (!batch_.input.defined()) {
    const std::int64_t batch = state_->options.batch;
    const std::int64_t first = position_ * batch;
    const std::int64_t rows = std::min(batch, state_->data.size() - first);
    const std::span<const std::int64_t> samples =
        std::span(pass_->order)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    // Both before either is kept: if the second does not fit, the next call begins anew.
    Batch filled{state_->input.fill(rows, samples), state_->target.fill(rows, samples)};
    batch_ = std::move(filled);
  }
  return batch_;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_ = {};  // so that its memory can serve the next
  ++position_;
  return *this;
}

}  // namespace ebb
