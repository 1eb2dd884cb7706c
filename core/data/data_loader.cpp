#include "ebb/core/data/data_loader.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/loader_pass.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/random/random_key.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

namespace detail {
// Position of a loader, with the properties that a loader that takes it up must share.
struct LoaderPosition {
  std::uint64_t pass = 0;
  std::int64_t position = 0;    // in the pass, in batches
  std::optional<Seed> shuffle;  // permutation() derives a key of its own purpose from it
  std::int64_t samples = 0;
  std::int64_t batch = 0;
  bool drop_last = false;

  LoaderPosition next_pass() const noexcept {
    LoaderPosition next = *this;
    ++next.pass;
    next.position = 0;
    return next;
  }

  Resumable::Position as_text() const {
    Resumable::Position text{{"pass", std::to_string(pass)},
                             {"position", std::to_string(position)},
                             {"samples", std::to_string(samples)},
                             {"batch", std::to_string(batch)},
                             {"drop_last", drop_last ? "1" : "0"}};
    if (shuffle) text.emplace("shuffle", std::to_string(shuffle->value));
    return text;
  }

  // Parses a position; nothing if a part is missing or no number.
  static std::optional<LoaderPosition> from_text(const Resumable::Position& text) noexcept {
    LoaderPosition result;
    int drop_last = 0;
    if (!(read_number(text, "pass", result.pass) &&
          read_number(text, "position", result.position) &&
          read_number(text, "samples", result.samples) &&
          read_number(text, "batch", result.batch) && read_number(text, "drop_last", drop_last)))
      return {};
    if (!std::in_range<std::int64_t>(result.pass)) return {};
    result.drop_last = drop_last != 0;
    if (text.contains("shuffle") && !read_number(text, "shuffle", result.shuffle.emplace().value))
      return {};
    return result;
  }

  // "100 samples in batches of 32, none of fewer, shuffled".
  std::string describe() const {
    return std::to_string(samples) + " samples in batches of " + std::to_string(batch) +
           (drop_last ? ", none of fewer" : "") + (shuffle ? ", shuffled" : ", in order");
  }
};
}  // namespace detail

namespace {
constexpr const char* kLoader = "DataLoader";

void check_options(std::int64_t samples, const DataLoaderOptions& options) {
  if (options.batch < 1)
    detail::refuse(kLoader, "batch must be at least 1, not " + std::to_string(options.batch));
  if (options.ahead < 0)
    detail::refuse(kLoader, "ahead must be at least 0, not " + std::to_string(options.ahead));
  if (samples < 1) detail::refuse(kLoader, "the data set is empty");
}

// The seed of the shuffle: rank 0's. Throws Error where the ranks' data differ in size or are cut
// in another way.
std::optional<Seed> shuffle_of(std::int64_t samples, const DataLoaderOptions& options) {
  const auto seed = options.shuffle.draws() ? Seed{detail::next_key()} : options.shuffle.seed();
  if (!options.shard) return seed;
  const std::string how = std::string("the ") + (seed ? "shuffled" : "given") +
                          " order of a DataLoader of " + std::to_string(samples) +
                          " samples, in batches of " + std::to_string(options.batch) +
                          (options.drop_last ? ", without the last" : "");
  const auto key = static_cast<std::uint64_t>(
      options.shard->state().exchange(how, static_cast<std::int64_t>(seed ? seed->value : 0))[0]);
  return seed ? std::optional(Seed{key}) : std::nullopt;
}

// Tells the world of a batch while it is in use.
std::shared_ptr<const void> use_of(const DataLoaderOptions& options, std::int64_t rows) {
  if (!options.shard) return nullptr;
  options.shard->state().add_batch(rows);
  return std::shared_ptr<const void>(
      static_cast<const void*>(&options),
      [world = *options.shard, rows](const void*) { world.state().remove_batch(rows); });
}

void check_reader(const SampleReader& reader) {
  if (reader.fields.empty() || !reader.read)
    detail::refuse(kLoader, "a reader has at least one field and a function that reads them");
  for (const Spec& field : reader.fields)
    if (field.shape.is_open() || !field.shape.is_countable() || field.shape.rank() == kMaxRank)
      detail::refuse<ShapeError>(kLoader, "a sample's field has a shape of less than " +
                                              std::to_string(kMaxRank) + " known dimensions, not " +
                                              field.to_string());
}
}  // namespace

struct DataLoader::State {
  State(detail::Samples samples, const DataLoaderOptions& chosen, CallSite site)
      : data(std::move(samples)),
        options(chosen),
        here{.shuffle = shuffle_of(data.size(), chosen),
             .samples = data.size(),
             .batch = options.batch,
             .drop_last = options.drop_last},
        memory(data, detail::most_rows(std::min(options.batch, data.size()), options),
               static_cast<std::size_t>(1 + detail::ahead_of(data.size(), options)), options.device,
               detail::tag(kLoader, site)) {}

  std::int64_t batches() const noexcept { return detail::batches_of(data.size(), options); }

  detail::LoaderPosition what_follows() const noexcept {
    const bool begun = here.position > 0 || current;  // current: a pass may have no batch
    return begun && here.position == batches() ? here.next_pass() : here;
  }
  std::vector<std::int64_t> order_of(std::uint64_t pass) const {
    if (here.shuffle)
      return detail::permutation(data.size(), here.shuffle->value, detail::Purpose::shuffle, pass);
    std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    return order;
  }

  const detail::Samples data;
  const DataLoaderOptions options;
  // Position in the pass that began last, behind all batches given out; before the first pass, its
  // beginning.
  detail::LoaderPosition here;
  const Iterator::Pass* current = nullptr;  // the pass that began last; may be gone
  detail::BatchMemory memory;
};

struct DataLoader::Iterator::Pass {
  Pass(std::shared_ptr<State> of, std::uint64_t number)
      : state(std::move(of)),
        batches(state->data, state->options, state->memory, state->order_of(number)) {}
  // Order matters: when the last handle goes, the thread in `batches`, which reads the state, must
  // end first.
  const std::shared_ptr<State> state;
  detail::LoaderPass batches;
};

DataLoader::DataLoader(DataSet data, const DataLoaderOptions& options, CallSite site) {
  const detail::CallScope call(site);
  check_options(data.size(), options);
  state_ = std::make_shared<State>(detail::Samples(std::move(data)), options, site);
}

DataLoader::DataLoader(SampleReader reader, const DataLoaderOptions& options, CallSite site) {
  const detail::CallScope call(site);
  check_options(reader.size, options);
  check_reader(reader);
  state_ = std::make_shared<State>(detail::Samples(std::move(reader)), options, site);
}

std::int64_t DataLoader::size() const noexcept { return state_->batches(); }

std::int64_t DataLoader::pass() const noexcept {
  return static_cast<std::int64_t>(state_->what_follows().pass);
}

std::int64_t DataLoader::given() const noexcept { return state_->what_follows().position; }

DataLoader::Iterator DataLoader::begin() { return Iterator(state_); }

DataLoader::Position DataLoader::position() const { return state_->what_follows().as_text(); }

void DataLoader::check(const Position& position, const std::string& file) const {
  const std::optional<detail::LoaderPosition> there = detail::LoaderPosition::from_text(position);
  if (!there) detail::refuse_file(file + ": the loader's position is damaged");
  const detail::LoaderPosition& here = state_->here;
  if (there->samples != here.samples || there->batch != here.batch ||
      there->drop_last != here.drop_last || there->shuffle.has_value() != here.shuffle.has_value())
    detail::refuse_file(file + " was saved with a loader of " + there->describe() +
                        "; this one has " + here.describe());
  if (there->position < 0 || there->position >= std::max<std::int64_t>(size(), 1))
    detail::refuse_file(file + ": the loader's position is batch " +
                        std::to_string(there->position) + " of " + std::to_string(size()));
}

void DataLoader::resume(const Position& position) noexcept {
  state_->here = detail::LoaderPosition::from_text(position).value_or(state_->here);
  state_->current = nullptr;
}

DataLoader::Iterator::Iterator(const std::shared_ptr<State>& state) {
  const detail::LoaderPosition start = state->current ? state->here.next_pass() : state->here;
  pass_ = std::make_shared<Pass>(state, start.pass);
  position_ = start.position;
  state->here = start;
  state->current = pass_.get();
}

bool DataLoader::Iterator::at_end() const noexcept { return position_ >= pass_->state->batches(); }

Batch DataLoader::Iterator::operator*() const {
  if (!batch_.input.defined()) {
    State& state = *pass_->state;
    if (at_end())
      throw Error(std::string("[") + kLoader + "] past the end of the pass, which has " +
                  std::to_string(state.batches()) + " batches");
    Batch batch = pass_->batches.take(position_);
    if (state.options.transform) {
      const detail::TapeModeScope mode(detail::without_history());
      batch = state.options.transform(batch);
      if (!batch.input.defined())
        throw Error(std::string("[") + kLoader +
                    "] the transform gives no batch: its input holds nothing");
    }
    in_use_ = use_of(state.options, pass_->batches.rows_at(position_));
    batch_ = std::move(batch);
    if (state.current == pass_.get())
      state.here.position = std::max(state.here.position, position_ + 1);
  }
  return batch_;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  in_use_ = {};
  batch_ = {};  // frees its memory for the next batch
  ++position_;
  return *this;
}

}  // namespace ebb
