#include "ebb/core/device/streams.h"

#include <exception>

namespace ebb::detail {

Stream* Streams::lend() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    Stream* const stream = idle_.back();
    idle_.pop_back();
    return stream;
  }
  idle_.reserve(all_.size() + 1);  // so that take_back() cannot fail
  all_.push_back(backend_->make_stream());
  return all_.back().get();
}

void Streams::take_back(Stream* stream) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(stream);
  constexpr std::size_t kAwake = 4;  // a session's, and those that a loader takes for each epoch
  if (idle_.size() > kAwake) backend_->rest(idle_[idle_.size() - kAwake - 1]);
}

// Null with at most two streams, which can wait for each other directly, or if the device has no
// more streams.
Stream* Streams::joint() noexcept {
  if (joint_ || all_.size() <= 2) return joint_.get();
  try {
    joint_ = backend_->make_stream();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  return joint_.get();
}

Status Streams::wait_for_all(Stream* stream) noexcept {
  const std::lock_guard lock(mutex_);
  Stream* const joint = this->joint();
  for (const std::unique_ptr<Stream>& other : all_)
    if (other.get() != stream)
      if (const Status status = backend_->wait(joint ? joint : stream, other.get()); !status.ok())
        return status;
  return joint ? backend_->wait(stream, joint) : Status{};
}

namespace {

// Streams lent to a thread. A device may end before the thread does.
class Lent {
 public:
  ~Lent() {
    is_over() = true;
    for (const Entry& entry : entries_)
      if (const std::shared_ptr<Streams> streams = entry.streams.lock())
        streams->take_back(entry.stream);
  }

  Stream* of(const std::shared_ptr<Streams>& streams) {
    for (const Entry& entry : entries_)
      if (!entry.streams.owner_before(streams) && !streams.owner_before(entry.streams))
        return entry.stream;
    std::erase_if(entries_, [](const Entry& entry) { return entry.streams.expired(); });
    entries_.reserve(entries_.size() + 1);
    entries_.push_back({streams, streams->lend()});
    return entries_.back().stream;
  }

  // Set once the thread's Lent is destroyed: tensors with static storage end after the main
  // thread's.
  static bool& is_over() noexcept {
    thread_local constinit bool over = false;
    return over;
  }

 private:
  struct Entry {
    std::weak_ptr<Streams> streams;
    Stream* stream;
  };
  std::vector<Entry> entries_;
};

}  // namespace

Stream* stream_of_thread(const std::shared_ptr<Streams>& streams) {
  if (Lent::is_over()) return streams->lend();
  thread_local Lent lent;
  return lent.of(streams);
}

}  // namespace ebb::detail
