#include "ebb/core/device/world_state.h"

#include <algorithm>
#include <string_view>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/base/process_rank.h"
#include "ebb/core/device/messenger.h"

namespace ebb::detail {

namespace {

constexpr std::size_t kTextBytes = 256;
constexpr std::size_t kWhatBytes = 190;  // leaves room for the line
enum Ending : std::int64_t { goes_on, closes, has_failed };

constexpr const char* kKinds[] = {"all_reduce", "broadcast's gradient", "all_gather",
                                  "reduce_scatter", "broadcast"};
constexpr const char* kOps[] = {"", " (mean)", " (max)"};

// "all_reduce (mean) of f32[3, 4], gradients of hidden.weight".
std::string text_of(const Collective& c) {
  return std::string(kKinds[c.kind]) + kOps[static_cast<int>(c.op)] +
         (c.kind == Collective::all_gather ? " to " : " of ") + c.spec.to_string() +
         (c.root > 0 ? ", root " + std::to_string(c.root) : "") +
         (*c.name ? std::string(", ") + c.name : "");
}

std::uint64_t hash_of(std::string_view text) noexcept {  // FNV-1a
  std::uint64_t sum = 0xCBF29CE484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return sum;
}

}  // namespace

bool WorldState::tells_of_failure() const {
  return std::ranges::any_of(
      queue_, [](const auto& operation) { return operation->mine.ending == has_failed; });
}

WorldState::WorldState(int rank, int size, const distributed::WorldOptions& options)
    : rank_(rank), size_(size), options_(options), messenger_(Messenger::instance()) {}

WorldState::WorldState(std::unique_ptr<Transport> headers, std::unique_ptr<Transport> data,
                       const distributed::WorldOptions& options)
    : WorldState(headers->rank(), headers->size(), options) {
  is_connected_ = true;
  headers_ = std::move(headers);
  data_ = std::move(data);
  const std::lock_guard lock(messenger_.mutex);
  messenger_.open(*this);
}

WorldState::Operation WorldState::asks(const std::string& what, const std::string& where,
                                       std::int64_t value) {
  Operation operation;
  operation.text = what.size() > kWhatBytes ? what.substr(0, kWhatBytes) + ".." : what;
  operation.text += where;
  operation.mine.signature = hash_of(what);
  operation.mine.value = value;
  return operation;
}

std::shared_ptr<WorldState::Operation> WorldState::enqueue(Operation operation) {
  auto shared = std::make_shared<Operation>(std::move(operation));
  const std::lock_guard lock(messenger_.mutex);
  if (!failure_.empty()) {
    shared->state = Operation::failed;
    return shared;
  }
  shared->mine.number = next_number_++;
  queue_.push_back(shared);
  messenger_.wake();
  return shared;
}

std::shared_ptr<WorldState::Operation> WorldState::perform(Operation operation) {
  const auto performed = enqueue(std::move(operation));
  std::unique_lock lock(messenger_.mutex);
  wait(lock, *performed);
  if (performed->state == Operation::failed) throw Error(message("World", failure_, entry()));
  return performed;
}

// Ranks that wait for each other in different worlds wait for good: the user hears where.
void WorldState::wait(std::unique_lock<std::mutex>& lock, const Operation& operation) noexcept {
  const auto is_over = [&] { return operation.state != Operation::under_way; };
  if (messenger_.changed.wait_for(lock, messenger_.patience, is_over)) return;
  lock.unlock();
  try {
    log_warning("World: rank " + std::to_string(rank_) + " still waits for the other ranks in " +
                operation.text);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it only says so
  }
  lock.lock();
  messenger_.changed.wait(lock, is_over);
}

Status WorldState::begin(const Collective& collective) noexcept {
  if (size_ == 1) return {};
  if (!is_connected_)
    return Status::refuse("this world was made for predictions: it has no other ranks");
  if (const Status status = collective.check(); !status.ok()) return status;
  try {
    const std::string what = text_of(collective), where = collective.where;
    Operation operation =
        asks(what, where + (collective.on_gpu ? ", on a GPU" : ""), collective.rows);
    const std::int64_t more[] = {collective.on_gpu, static_cast<std::int64_t>(collective.sum_dtype),
                                 options_.ordered, static_cast<std::int64_t>(options_.sharding)};
    operation.mine.signature =
        hash_of(what + std::string(reinterpret_cast<const char*>(more), sizeof more));
    operation.collective = collective;
    operation.transfers = collective.on_gpu ? 0 : collective.combine ? 2 : 1;
    const auto begun = enqueue(std::move(operation));
    const std::lock_guard lock(messenger_.mutex);
    begun_.push_back(begun);
    return {};
  } catch (const std::exception&) {
    return Status::refuse("no memory for a message");
  }
}

Status WorldState::finish(const void* to) noexcept {
  if (size_ == 1) return {};
  std::unique_lock lock(messenger_.mutex);
  const auto found = std::ranges::find_if(
      begun_, [&](const auto& operation) { return operation->collective.to == to; });
  if (found == begun_.end()) return Status::refuse("was not begun");
  const std::shared_ptr<Operation> operation = *found;
  wait(lock, *operation);
  std::erase(begun_, operation);
  if (operation->state == Operation::failed) return Status::fail(failure_.c_str());
  if (operation->collective.is_counted)
    sent_bytes_ += operation->collective.sent_bytes(rank_, size_);
  return {};
}

void WorldState::cut_links() noexcept {
  for (const auto& [device, link] : links_)
    if (link) link->cut();
  links_.clear();
}

void WorldState::drain() noexcept {
  cut_links();  // the step has failed, and the world is about to
  std::unique_lock lock(messenger_.mutex);
  messenger_.changed.wait(lock, [&] {
    return std::ranges::none_of(
        begun_, [](const auto& operation) { return operation->state == Operation::under_way; });
  });
  begun_.clear();
}

Status WorldState::count(const Collective& collective) noexcept {
  counted().bytes += collective.sent_bytes(rank_, size_);
  counted().messages += collective.messages(size_);
  return size_ > 1 ? collective.check() : Status{};
}

Status WorldState::rows(std::int64_t& rows) const noexcept {
  const std::lock_guard lock(messenger_.mutex);
  rows = batches_.empty() ? 1 : batches_.back();
  if (std::ranges::any_of(batches_, [&](std::int64_t other) { return other != rows; }))
    return Status::refuse(
        "two loaders of the world have batches of different sizes in use: of how many rows is the "
        "loss the mean? optim::Accumulator takes their number");
  return {};
}

void WorldState::add_batch(std::int64_t rows) {
  const std::lock_guard lock(messenger_.mutex);
  batches_.push_back(rows);
}

bool WorldState::has_batch() const noexcept {
  const std::lock_guard lock(messenger_.mutex);
  return !batches_.empty();
}

void WorldState::remove_batch(std::int64_t rows) noexcept {
  const std::lock_guard lock(messenger_.mutex);
  batches_.erase(std::ranges::find(batches_, rows));
}

std::vector<std::int64_t> WorldState::exchange(const std::string& name, std::int64_t value) {
  if (!is_connected_) return std::vector<std::int64_t>(static_cast<std::size_t>(size_), value);
  const auto done = perform(asks(name, at(entry()), value));
  std::vector<std::int64_t> values;
  for (const Header& header : done->all) values.push_back(header.value);
  return values;
}

std::vector<std::string> WorldState::gather(const std::string& name, const std::string& text) {
  if (size_ == 1) return {text};
  std::vector<std::string> texts;
  for (const std::int64_t length : exchange(name, static_cast<std::int64_t>(text.size()))) {
    Collective c{.kind = Collective::broadcast,
                 .root = static_cast<int>(texts.size()),
                 .spec = {DType::u8, {length}}};
    texts.push_back(text);
    texts.back().resize(static_cast<std::size_t>(length));
    c.from = c.to = texts.back().data();
    if (const Status status = run(c); !status.ok())
      throw Error(message("World", status.problem, entry()));
  }
  return texts;
}

WorldState& WorldState::split(int color) {
  if (!is_connected_) return keep(std::make_unique<WorldState>(0, 1, options_));
  WorldState* part = nullptr;
  Operation operation = asks("split", at(entry()));
  operation.transfers = 1;
  operation.action = [&] {
    std::unique_ptr<Transport> headers = headers_->split(color), data = data_->split(color);
    part = &keep(std::make_unique<WorldState>(std::move(headers), std::move(data), options_));
  };
  perform(std::move(operation));
  return *part;
}

WorldState::Operation WorldState::closing() {
  Operation operation = asks("close", at(entry()));
  operation.mine.ending = closes;
  return operation;
}

void WorldState::close() {
  if (!is_connected_) return;
  std::unique_lock lock(messenger_.mutex);
  const bool is_over = !failure_.empty();
  lock.unlock();
  if (is_over) return cut_links();
  try {
    perform(closing());
    links_.clear();
  } catch (const Error&) {
    cut_links();
    throw;
  }
}

void WorldState::fail(const std::string& cause) noexcept {
  if (!is_connected_) return;
  cut_links();
  try {
    const int in_job = process_rank();
    enqueue(
        {.text = (in_job == rank_ ? "" : "(rank " + std::to_string(in_job) + " of all) ") + cause,
         .mine = {.ending = has_failed}});
  } catch (const std::exception&) {  // the launcher notices when this process ends
  }
}

bool WorldState::advance() {
  std::shared_ptr<Operation> first;
  {
    const std::lock_guard lock(messenger_.mutex);
    if (queue_.empty()) return false;
    first = queue_.front();
  }
  const int before = first->step;
  std::string failure;
  try {
    failure = advance(*first);
  } catch (const std::exception& error) {
    failure = "rank " + std::to_string(rank_) + " cannot reach the others: " + error.what();
  }
  if (!failure.empty()) {
    headers_.reset();
    data_.reset();
    const std::lock_guard lock(messenger_.mutex);
    messenger_.end(*this, failure);
    if (failure == kClosed) first->state = Operation::done;
  }
  return first->step != before;
}

std::string WorldState::advance(Operation& operation) {
  if (operation.transfer && !operation.transfer->is_done()) return {};
  const auto tell = [&](void* all, std::size_t bytes) {
    const std::vector<int> parts(static_cast<std::size_t>(size_), static_cast<int>(bytes / 8));
    operation.transfer = headers_->gather_in_place(all, parts, 8);
  };
  const auto agrees = [&](const Header& header) {
    return header.agrees_with(operation.mine) && header.ending != has_failed;
  };
  const auto rank = static_cast<std::size_t>(rank_), size = static_cast<std::size_t>(size_);
  const int step = operation.step++;
  operation.transfer.reset();
  if (step == 0) {
    operation.all.resize(size);
    operation.all[rank] = operation.mine;
    tell(operation.all.data(), sizeof(Header));
  } else if (!operation.texts.empty()) {
    return explain(operation);
  } else if (step == 1 && !std::ranges::all_of(operation.all, agrees)) {
    operation.texts.resize(kTextBytes * size);
    operation.text.copy(operation.texts.data() + kTextBytes * rank, kTextBytes - 1);
    tell(operation.texts.data(), kTextBytes);
  } else if (step <= operation.transfers) {
    operation.transfer = begin_transfer(operation, step);
  } else {
    const std::lock_guard lock(messenger_.mutex);
    queue_.pop_front();
    if (operation.mine.ending == closes) return kClosed;
    operation.state = Operation::done;
    messenger_.changed.notify_all();
  }
  return {};
}

// Names what the ranks do: the same words on each.
std::string WorldState::explain(const Operation& operation) const {
  const std::vector<Header>& all = operation.all;
  const auto text = [&](std::size_t rank) {
    return std::string(operation.texts.data() + kTextBytes * rank);
  };
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].ending == has_failed)
      return "rank " + std::to_string(k) + " of " + std::to_string(size_) +
             " has failed: " + text(k);
  const auto does = [&](std::size_t rank) {
    return "rank " + std::to_string(rank) +
           (all[rank].ending == closes ? " closes it" : " calls " + text(rank));
  };
  const auto other = std::ranges::find_if_not(
      all, [&](const Header& header) { return header.agrees_with(all[0]); });
  return "the ranks differ in collective " + std::to_string(operation.mine.number) +
         " of the world: " + does(0) + ", " + does(static_cast<std::size_t>(other - all.begin())) +
         "; models, shapes, numbers of steps and options of the world must be the same on every "
         "rank";
}

Transport::Started WorldState::begin_transfer(const Operation& operation, int step) {
  if (operation.action) {
    operation.action();
    return nullptr;
  }
  const Collective& c = operation.collective;
  const auto count = static_cast<int>(c.elements());
  const std::size_t item = size_of(c.spec.dtype), sum_item = size_of(c.sum_dtype);
  const bool scatters = c.kind == Collective::reduce_scatter;
  std::vector<int> shares;
  for (int k = 0; k < size_; ++k)
    shares.push_back(static_cast<int>(share_of(c.elements(), size_, k)));
  const int own = shares[static_cast<std::size_t>(rank_)];
  if (c.kind == Collective::broadcast) return data_->broadcast(c.to, count, item, c.root);
  if (c.kind == Collective::all_gather) return data_->gather_in_place(c.to, shares, item);
  if (!c.combine && scatters) return data_->reduce_scatter(c.from, c.to, own, c.spec.dtype, c.op);
  if (!c.combine) return data_->all_reduce(c.from, c.to, count, c.spec.dtype, c.op);
  if (step == 1)
    return data_->exchange(c.from, shares, c.workspace, std::vector<int>(shares.size(), own), item);
  std::vector<std::int64_t> rows;
  for (const Header& header : operation.all) rows.push_back(header.value);
  const Buffer sums{c.to, {c.sum_dtype, c.spec.shape}};
  c.combine(c, c.workspace, scatters ? c.to : share_in(sums, size_, rank_).data(), own, rows);
  return scatters ? nullptr : data_->gather_in_place(c.to, shares, sum_item);
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
