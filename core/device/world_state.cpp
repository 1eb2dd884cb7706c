#include "ebb/core/device/world_state.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/base/process_rank.h"
#include "ebb/core/device/messenger.h"

namespace ebb::detail {

namespace {

constexpr std::size_t kTextBytes = 256;
enum Ending : std::int64_t { goes_on, closes, has_failed };

constexpr const char* kKinds[] = {"all_reduce", "broadcast's gradient",
                                  "all_gather", "reduce_scatter",
                                  "broadcast",  "all_gather of shares"};
constexpr const char* kOps[] = {"sum", "mean", "max"};

void hash(std::uint64_t& sum, const void* bytes, std::size_t count) noexcept {  // FNV-1a
  for (std::size_t i = 0; i < count; ++i)
    sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001B3;
}

std::uint64_t signature_of(const Collective& c, int size,
                           const distributed::WorldOptions& options) noexcept {
  const std::int64_t numbers[] = {c.kind,
                                  static_cast<std::int64_t>(c.op),
                                  c.root,
                                  c.adds,
                                  static_cast<std::int64_t>(c.spec.dtype),
                                  static_cast<std::int64_t>(c.sum_dtype),
                                  size,
                                  options.ordered,
                                  static_cast<std::int64_t>(options.sharding),
                                  c.on_gpu};
  std::uint64_t sum = 0xCBF29CE484222325;
  hash(sum, numbers, sizeof numbers);
  for (int i = 0; i < c.spec.shape.rank(); ++i) {
    const std::int64_t dim = c.spec.shape.dim(i);
    hash(sum, &dim, sizeof dim);
  }
  hash(sum, c.name, std::strlen(c.name));
  return sum;
}

// "all_reduce (mean) of f32[3, 4], gradients of hidden.weight (train.cpp:12)".
std::string text_of(const Collective& c) {
  std::string text = kKinds[c.kind];
  if (c.op != ReduceOp::sum) text += std::string(" (") + kOps[static_cast<int>(c.op)] + ")";
  text += " of " + c.spec.to_string();
  constexpr std::size_t kNameBytes = 150;  // leaves room for the line
  std::string name = c.name;
  if (name.size() > kNameBytes) name = name.substr(0, kNameBytes) + "..";
  if (!name.empty()) text += ", " + name;
  return text + c.where + (c.on_gpu ? ", on a GPU" : "");
}

std::int64_t elements_of(const Collective& c) noexcept {
  return product(c.spec.shape, 0, c.spec.shape.rank());
}

}  // namespace

const std::string& WorldState::closed() {
  static const std::string& text = *new std::string("this world is closed");
  return text;
}

bool WorldState::tells_of_failure() const {
  return std::ranges::any_of(
      queue_, [](const auto& operation) { return operation->mine.ending == has_failed; });
}

WorldState::WorldState(std::unique_ptr<Transport> headers, std::unique_ptr<Transport> data,
                       const distributed::WorldOptions& options)
    : rank_(headers->rank()),
      size_(headers->size()),
      options_(options),
      is_connected_(true),
      headers_(std::move(headers)),
      data_(std::move(data)) {
  const std::lock_guard lock(Messenger::instance().mutex);
  Messenger::instance().open(*this);
}

std::shared_ptr<WorldState::Operation> WorldState::enqueue(Operation operation) {
  auto shared = std::make_shared<Operation>(std::move(operation));
  Messenger& messenger = Messenger::instance();
  const std::lock_guard lock(messenger.mutex);
  if (!failure_.empty()) {
    shared->is_done = true;
    return shared;
  }
  shared->mine.number = next_number_++;
  queue_.push_back(shared);
  messenger.add(*this);
  return shared;
}

void WorldState::wait_for(const Operation& operation) {
  Messenger& messenger = Messenger::instance();
  std::unique_lock lock(messenger.mutex);
  messenger.changed.wait(lock, [&] { return operation.is_done; });
}

Status WorldState::begin(const Collective& collective) noexcept {
  if (!is_connected_)
    return Status::refuse("this world was made for predictions: it has no other ranks");
  if (elements_of(collective) > std::numeric_limits<int>::max())
    return Status::refuse("sends at most 2147483647 elements at once");
  try {
    Operation operation{.collective = collective, .text = text_of(collective)};
    operation.mine.signature = signature_of(collective, size_, options_);
    operation.mine.value = collective.rows;
    if (collective.on_gpu) operation.action = [] {};
    const auto begun = enqueue(std::move(operation));
    const std::lock_guard lock(Messenger::instance().mutex);
    begun_.push_back(begun);
    return {};
  } catch (const std::exception&) {
    return Status::refuse("no memory for a message");
  }
}

Status WorldState::finish(const void* to) noexcept {
  Messenger& messenger = Messenger::instance();
  std::unique_lock lock(messenger.mutex);
  const auto found = std::ranges::find_if(
      begun_, [&](const auto& operation) { return operation->collective.to == to; });
  if (found == begun_.end()) return Status::refuse("was not begun");
  const std::shared_ptr<Operation> operation = *found;
  messenger.changed.wait(lock, [&] { return operation->is_done; });
  std::erase(begun_, operation);
  if (failure_.empty() || operation->step < 0) {
    if (operation->collective.is_counted)
      sent_bytes_ += operation->collective.sent_bytes(rank_, size_);
    return {};
  }
  return operation->has_written ? Status::fail(failure_.c_str()) : Status::refuse(failure_.c_str());
}

void WorldState::cut_links() noexcept {
  for (const auto& [device, link] : links_)
    if (link) link->cut();
  links_.clear();
}

void WorldState::drain() noexcept {
  cut_links();  // the step has failed, and the world is about to
  Messenger& messenger = Messenger::instance();
  std::unique_lock lock(messenger.mutex);
  messenger.changed.wait(lock, [&] {
    return std::ranges::all_of(begun_, [](const auto& operation) { return operation->is_done; });
  });
  begun_.clear();
}

void WorldState::count(const Collective& collective) noexcept {
  counted().bytes += collective.sent_bytes(rank_, size_);
  counted().messages += collective.messages(size_);
}

Status WorldState::rows(std::int64_t& rows) const noexcept {
  const std::lock_guard lock(Messenger::instance().mutex);
  rows = batches_.empty() ? 1 : batches_.back();
  if (std::ranges::any_of(batches_, [&](std::int64_t other) { return other != rows; }))
    return Status::refuse(
        "two loaders of the world have given out batches of different sizes that are in use, so it "
        "is not known how many rows the loss is the mean of; optim::Accumulator takes their "
        "number");
  return {};
}

void WorldState::add_batch(std::int64_t rows) {
  const std::lock_guard lock(Messenger::instance().mutex);
  batches_.push_back(rows);
}

bool WorldState::has_batch() const noexcept {
  const std::lock_guard lock(Messenger::instance().mutex);
  return !batches_.empty();
}

void WorldState::remove_batch(std::int64_t rows) noexcept {
  const std::lock_guard lock(Messenger::instance().mutex);
  const auto found = std::ranges::find(batches_, rows);
  if (found != batches_.end()) batches_.erase(found);
}

std::vector<std::int64_t> WorldState::exchange(const char* name, std::int64_t value) {
  if (!is_connected_) return std::vector<std::int64_t>(static_cast<std::size_t>(size_), value);
  Operation operation{.text = std::string(name) + at(entry())};
  operation.mine.signature = 0xCBF29CE484222325;
  hash(operation.mine.signature, name, std::strlen(name));
  operation.mine.value = value;
  operation.action = [] {};
  const auto done = enqueue(std::move(operation));
  wait_for(*done);
  if (done->step >= 0) throw Error(message("World", failure_, entry()));
  std::vector<std::int64_t> values;
  for (const Header& header : done->all) values.push_back(header.value);
  return values;
}

std::vector<std::string> WorldState::gather(const char* name, const std::string& text) {
  if (size_ == 1) return {text};
  std::vector<std::string> texts;
  for (const std::int64_t length : exchange(name, static_cast<std::int64_t>(text.size()))) {
    Collective c;
    c.kind = Collective::broadcast;
    c.root = static_cast<int>(texts.size());
    c.spec = {DType::u8, {length}};
    texts.push_back(text);
    texts.back().resize(static_cast<std::size_t>(length));
    c.from = c.to = texts.back().data();
    Status status = begin(c);
    if (status.ok()) status = finish(c.to);
    if (!status.ok()) throw Error(message("World", status.problem, entry()));
  }
  return texts;
}

WorldState& WorldState::split(int color) {
  if (!is_connected_) return keep(std::make_unique<WorldState>(0, 1, options_));
  WorldState* part = nullptr;
  Operation operation{.text = "split" + at(entry())};
  operation.mine.signature = 1;
  operation.action = [&] {
    std::unique_ptr<Transport> headers = headers_->split(color), data = data_->split(color);
    part = &keep(std::make_unique<WorldState>(std::move(headers), std::move(data), options_));
  };
  const auto done = enqueue(std::move(operation));
  wait_for(*done);
  if (done->step >= 0) throw Error(message("World", failure_, entry()));
  return *part;
}

std::shared_ptr<WorldState::Operation> WorldState::say_closed() {
  Operation operation{.text = "close" + at(entry())};
  operation.mine.ending = closes;
  return enqueue(std::move(operation));
}

void WorldState::close() {
  if (!is_connected_) return;
  if (is_over()) return cut_links();
  const auto done = say_closed();
  wait_for(*done);
  const bool has_failed = done->step >= 0 && failure_ != closed();
  has_failed ? cut_links() : links_.clear();
  if (has_failed) throw Error(message("World", failure_, entry()));
}

bool WorldState::is_over() const noexcept {
  const std::lock_guard lock(Messenger::instance().mutex);
  return !failure_.empty();
}

void WorldState::fail(const std::string& cause) noexcept {
  if (!is_connected_) return;
  cut_links();
  try {
    {
      const std::lock_guard lock(Messenger::instance().mutex);
      if (tells_of_failure()) return;
    }
    const int in_job = process_rank();
    Operation operation{
        .text = (in_job == rank_ ? "" : "(rank " + std::to_string(in_job) + " of all) ") + cause};
    operation.mine.ending = has_failed;
    enqueue(std::move(operation));
  } catch (const std::exception&) {  // the launcher notices when this process ends
  }
}

bool WorldState::advance() {
  Messenger& messenger = Messenger::instance();
  std::shared_ptr<Operation> first;
  {
    const std::lock_guard lock(messenger.mutex);
    if (queue_.empty()) return false;
    first = queue_.front();
  }
  const auto before = std::pair(first->phase, first->step);
  try {
    advance(*first);
  } catch (const std::exception& error) {
    end("rank " + std::to_string(rank_) + " cannot reach the others: " + error.what());
  }
  return std::pair(first->phase, first->step) != before;
}

void WorldState::advance(Operation& operation) {
  if (operation.transfer && !operation.transfer->is_done()) return;
  operation.transfer.reset();
  switch (operation.phase) {
    case Operation::waits:
      operation.all.resize(static_cast<std::size_t>(size_));
      operation.transfer =
          headers_->all_gather(&operation.mine, operation.all.data(), sizeof(Header) / 8, 8);
      operation.phase = Operation::compares;
      return;
    case Operation::compares:
      if (!compare(operation)) {
        operation.texts.resize(kTextBytes * static_cast<std::size_t>(size_ + 1));
        char* const mine = operation.texts.data() + kTextBytes * static_cast<std::size_t>(size_);
        operation.text.copy(mine, kTextBytes - 1);
        operation.transfer = headers_->all_gather(mine, operation.texts.data(), kTextBytes / 8, 8);
        operation.phase = Operation::explains;
        return;
      }
      if (operation.mine.ending == closes) return end(closed());
      operation.phase = Operation::moves;
      return;
    case Operation::explains:
      return end(explain(operation));
    case Operation::moves:
      if (operation.action) {
        operation.action();
      } else if ((operation.transfer = next_transfer(operation))) {
        ++operation.step;
        operation.has_written = true;
        return;
      }
      break;
  }
  Messenger& messenger = Messenger::instance();
  const std::lock_guard lock(messenger.mutex);
  operation.step = -1;  // done as it should be
  operation.is_done = true;
  queue_.pop_front();
  messenger.changed.notify_all();
}

// Whether all ranks are about to do the same.
bool WorldState::compare(Operation& operation) {
  return std::ranges::all_of(operation.all, [&](const Header& header) {
    return header.number == operation.mine.number && header.signature == operation.mine.signature &&
           header.ending == operation.mine.ending && header.ending != has_failed;
  });
}

// Names what the ranks do: the same words on each.
std::string WorldState::explain(const Operation& operation) const {
  const auto text = [&](std::size_t rank) {
    return std::string(operation.texts.data() + kTextBytes * rank);
  };
  const std::string step = "collective " + std::to_string(operation.mine.number) + " of the world";
  const std::vector<Header>& all = operation.all;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].ending == has_failed)
      return "rank " + std::to_string(k) + " of " + std::to_string(size_) +
             " has failed: " + text(k);
  const auto does = [&](std::size_t rank) {
    return all[rank].ending == closes ? "closes it" : "calls " + text(rank);
  };
  // The first rank that differs from rank 0.
  const auto other =
      static_cast<std::size_t>(std::ranges::find_if(all,
                                                    [&](const Header& header) {
                                                      return header.signature != all[0].signature ||
                                                             header.ending != all[0].ending ||
                                                             header.number != all[0].number;
                                                    }) -
                               all.begin());
  return "the ranks differ in " + step + ": rank 0 " + does(0) + ", rank " + std::to_string(other) +
         " " + does(other) + "; models, shapes and numbers of steps must be the same on every rank";
}

Transport::Started WorldState::next_transfer(Operation& operation) {
  const Collective& c = operation.collective;
  const std::int64_t elements = elements_of(c);
  const std::size_t size = size_of(c.spec.dtype);
  const auto count = static_cast<int>(elements);
  std::vector<int> shares, own;
  const auto deal = [&] {
    for (int k = 0; k < size_; ++k) {
      shares.push_back(static_cast<int>(share_of(elements, size_, k)));
      own.push_back(static_cast<int>(share_of(elements, size_, rank_)));
    }
  };
  const auto combine = [&](void* to) {
    std::vector<std::int64_t> rows;
    for (const Header& header : operation.all) rows.push_back(header.value);
    c.combine(c, c.workspace, to, own[0], rows);
  };
  switch (c.kind) {
    case Collective::all_gather:
      return operation.step > 0 ? nullptr : data_->all_gather(c.from, c.to, count, size);
    case Collective::broadcast:
      return operation.step > 0 ? nullptr : data_->broadcast(c.to, count, size, c.root);
    case Collective::gather_shares:
      deal();
      return operation.step > 0 ? nullptr : data_->gather_in_place(c.to, shares, size);
    case Collective::reduce_scatter:
      if (!c.combine)
        return operation.step > 0
                   ? nullptr
                   : data_->reduce_scatter(c.from, c.to, count / size_, c.spec.dtype, c.op);
      deal();
      if (operation.step == 0) return data_->exchange(c.from, shares, c.workspace, own, size);
      combine(c.to);
      return nullptr;
    case Collective::all_reduce:
    case Collective::reduce_to:
      break;
  }
  if (!c.combine)
    return operation.step > 0 ? nullptr
                              : data_->all_reduce(c.from, c.to, count, c.spec.dtype, c.op);
  if (operation.step > 1) return nullptr;
  deal();
  if (operation.step == 0) return data_->exchange(c.from, shares, c.workspace, own, size);
  const std::size_t sum_size = size_of(c.sum_dtype);
  const auto first = static_cast<std::size_t>(share_begin(elements, size_, rank_));
  combine(static_cast<std::byte*>(c.to) + first * sum_size);
  return data_->gather_in_place(c.to, shares, sum_size);
}

// The world is over: for all that is queued, and all that will be.
void WorldState::end(const std::string& failure) {
  headers_.reset();
  data_.reset();
  Messenger& messenger = Messenger::instance();
  const std::lock_guard lock(messenger.mutex);
  messenger.end(*this, failure);
}

WorldState& WorldState::keep(std::unique_ptr<WorldState> world) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<WorldState>>;
  const std::lock_guard lock(mutex);
  all.push_back(std::move(world));
  return *all.back();
}

WorldState& open_world(const distributed::WorldOptions& options) {
  WorldState* world = nullptr;
  Messenger::instance().call([&] {
    Transport* const job = Messenger::instance().job();
    if (!job || job->size() == 1) {
      world = &WorldState::keep(std::make_unique<WorldState>(0, 1, options));
      return;
    }
    process_rank() = job->rank();
    std::unique_ptr<Transport> headers = job->split(0), data = job->split(0);
    world = &WorldState::keep(
        std::make_unique<WorldState>(std::move(headers), std::move(data), options));
  });
  return *world;
}

WorldState*& predicted_world() noexcept {
  thread_local constinit WorldState* world = nullptr;
  return world;
}

Sent& counted() noexcept {
  thread_local constinit Sent sent;
  return sent;
}

}  // namespace ebb::detail
