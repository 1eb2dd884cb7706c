#include "ebb/tests/device/deferred_backend.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "ebb/core/base/reference.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/tests/device/deferred_order.h"

namespace ebb::tests {
namespace {

// Beyond this many bytes of the host's in one stream, its oldest work is done.
constexpr std::size_t kMostHeldBytes = std::size_t{128} << 20;

// A status tells static text: each one is kept for the life of the process.
const char* keep(const std::string& text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts->insert(text).first->c_str();
}

// A part of memory that work reads or writes.
struct Place {
  const void* address = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  std::uint64_t segment = 0;
};

// A kernel with all that it sees, addresses translated.
struct Call {
  Kernel run = nullptr;
  KernelContext context = {};
  Attributes attributes = {};
  IndexSet destroyed = {};
  std::vector<Buffer> inputs = {}, outputs = {};

  Status operator()() {
    context.inputs = inputs;
    context.outputs = outputs;
    if (context.attributes) context.attributes = &attributes;
    if (context.destroyed) context.destroyed = &destroyed;
    flush_denormals_on_this_thread();
    return run(context);
  }
};

}  // namespace

const char* name(DeferredBackend::Work work) noexcept {
  constexpr std::array names = {"copy_in", "copy_out", "copy", "fill", "launch"};
  return names[static_cast<std::size_t>(work)];
}

std::uint64_t deferred_seed() noexcept {
  const char* text = std::getenv("EBB_DEFERRED_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

// Streams, and what happens when. The lock is not held while work is done, so that threads with
// streams of their own go on beside each other.
struct DeferredBackend::State : std::enable_shared_from_this<State> {
  struct Queue;
  struct Entry {
    Work work = Work::launch;
    const char* name = "";
    std::function<Status()> run = {};
    std::vector<Place> places = {};
    detail::Ref<const Prepared> prepared = {};  // in use by one thread at a time
    std::size_t held_bytes = 0;
    Status later = {};         // the failure that a test asked for
    Status* answer = nullptr;  // of work that is done at once: who is told
    std::uint64_t number = 0;
    // A wait, if there is one: until so many of the other's entries are done.
    std::shared_ptr<Queue> other = {};
    std::uint64_t other_done = 0;
  };
  struct Queue {
    std::size_t number = 0;
    std::deque<Entry> entries;
    std::uint64_t asked = 0;
    std::size_t held_bytes = 0;
    bool running = false;  // an entry that was taken out
    bool closed = false;   // the stream is gone; what it was asked for is still done
    std::uint64_t done() const noexcept { return asked - entries.size() - (running ? 1 : 0); }
  };
  struct Injected {
    Fault fault;
    std::size_t successes;
  };

  State(std::shared_ptr<DeferredMemory> memory, std::uint64_t seed)
      : memory(std::move(memory)), random(seed) {}

  const std::shared_ptr<DeferredMemory> memory;
  mutable std::mutex mutex;  // of all that follows
  std::condition_variable changed;
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<const Prepared*> busy;
  std::mt19937_64 random;
  std::size_t streams = 0;
  Status lost;
  DeferredOrder order;
  bool checks_order = true;
  bool at_once = false, drops_waits = false, keeps_log = false;
  std::size_t most_waiting = 4096;
  std::array<std::optional<Injected>, 5> injected;
  std::vector<Ran> log;

  using Lock = std::unique_lock<std::mutex>;

  bool one_in(std::uint64_t n) { return random() % n == 0; }

  // Takes away waits that are over.
  static void settle(Queue& queue) {
    if (queue.running) return;
    while (!queue.entries.empty()) {
      const Entry& first = queue.entries.front();
      if (!first.other || first.other->done() < first.other_done) return;
      queue.entries.pop_front();
    }
  }
  bool ready(Queue& queue) const {
    settle(queue);
    if (queue.running || queue.entries.empty()) return false;
    const Entry& first = queue.entries.front();
    return !first.other && std::find(busy.begin(), busy.end(), first.prepared.get()) == busy.end();
  }
  // What has to go on first for this queue to go on.
  static std::shared_ptr<Queue> first_of(std::shared_ptr<Queue> queue) {
    while (true) {
      settle(*queue);
      if (queue->running || queue->entries.empty() || !queue->entries.front().other) return queue;
      queue = std::shared_ptr(queue->entries.front().other);
    }
  }
  std::shared_ptr<Queue> any_ready() {
    const std::size_t begin = queues.empty() ? 0 : random() % queues.size();
    for (std::size_t i = 0; i < queues.size(); ++i)
      if (const auto& queue = queues[(begin + i) % queues.size()]; ready(*queue)) return queue;
    return nullptr;
  }
  void forget_closed() {
    std::erase_if(queues, [](const auto& queue) {
      return queue->closed && !queue->running && queue->entries.empty();
    });
  }

  void lose(Status status, const std::string& name) {
    if (!lost.ok()) return;
    lost = Status::fail(keep(name + ": " + status.problem), status.code);
    for (const auto& queue : queues) {
      queue->entries.clear();
      queue->held_bytes = 0;
    }
    order.host_waited_for_all();
  }

  Status check(const Entry& entry) const {
    for (const Place& place : entry.places)
      if (memory->generation_of(place.address, place.bytes) != place.segment)
        return Status::fail("memory that was gone before the work was done");
    return {};
  }

  // Does the first of a queue that is ready.
  void run_first(Lock& lock, const std::shared_ptr<Queue>& queue) {
    Entry entry = std::move(queue->entries.front());
    queue->entries.pop_front();
    queue->running = true;
    queue->held_bytes -= entry.held_bytes;
    const Prepared* const prepared = entry.prepared.get();
    if (prepared) busy.push_back(prepared);
    if (keeps_log) log.push_back({queue->number, entry.work, entry.name, entry.number});
    const std::string name = entry.name;
    lock.unlock();
    Status status = check(entry);
    bool loses = true;
    if (status.ok() && entry.later.ok()) {
      status = entry.run();
      if (entry.answer) *entry.answer = status;
      loses = !entry.answer;
    } else if (status.ok()) {
      status = entry.later;
    }
    entry = {};  // what it prepared may end here, without the lock
    lock.lock();
    queue->running = false;
    if (prepared) std::erase(busy, prepared);
    if (!status.ok() && loses) lose(status, name);
    changed.notify_all();
  }

  // Until the queue has done so much, or the device is lost and the queue is at rest.
  void run_until(Lock& lock, const std::shared_ptr<Queue>& queue, std::uint64_t done) {
    // How much of other streams' work comes in between: nothing, or up to most of it.
    constexpr std::array<std::uint64_t, 4> kOthers = {0, 1, 4, 7};
    const std::uint64_t others = kOthers[random() % kOthers.size()];
    while (true) {
      const auto first = first_of(queue);
      if (!lost.ok() ? !queue->running : queue->done() >= done) break;
      const auto other = random() % 8 < others ? any_ready() : nullptr;
      if (other) {
        run_first(lock, other);
      } else if (ready(*first)) {
        run_first(lock, first);
      } else if (first->running || !first->entries.empty()) {
        changed.wait(lock);  // another thread does it, or uses what it prepared
      }
    }
    forget_closed();
  }

  // The stream's queue; null for one that is not of this device.
  std::shared_ptr<Queue> queue_of(Stream* stream) const;

  // The failure that a test has asked for at this piece of work; none if it has not.
  std::optional<Fault> fault_of(Work work) {
    auto& place = injected[static_cast<std::size_t>(work)];
    if (!place) return {};
    if (place->successes-- > 0) return {};
    const Fault fault = place->fault;
    place.reset();
    return fault;
  }

  Status find(Entry& entry, const void* address, std::size_t bytes, bool writes) const {
    const std::uint64_t segment = memory->generation_of(address, bytes);
    if (segment == 0)
      return Status::fail(
          keep(std::string(entry.name) + ": an address that is not in this device's memory"));
    entry.places.push_back({address, bytes, writes, segment});
    return {};
  }

  Status ask(Stream* stream, Entry entry, bool finish = false) {
    Lock lock(mutex);
    if (!lost.ok()) return lost;
    const auto queue = queue_of(stream);
    if (!queue) return Status::fail(keep(std::string(entry.name) + ": no stream of this device"));
    const std::optional<Fault> fault = fault_of(entry.work);
    if (fault == Fault::refused)
      return Status::refuse(keep(std::string(entry.name) + ": refused, as the test asked for"));
    const Status failed =
        Status::fail(keep(std::string(entry.name) + ": failed, as the test asked for"));
    if (fault == Fault::failed && finish) return failed;
    if (fault == Fault::later) entry.later = Status::fail("failed later, as the test asked for");
    if (checks_order) {
      std::vector<DeferredOrder::Use> uses;
      for (const Place& place : entry.places)
        uses.push_back({place.address, place.bytes, place.writes});
      const std::string missed = order.use(queue->number, entry.name, uses);
      if (!missed.empty()) return Status::fail(keep(missed));
    }
    Status answer;
    if (at_once) entry.answer = &answer;
    entry.number = queue->asked;
    queue->held_bytes += entry.held_bytes;
    queue->entries.push_back(std::move(entry));
    const std::uint64_t all = ++queue->asked;
    if (finish || at_once) {
      run_until(lock, queue, all);
      if (finish) order.host_waited(queue->number);
    } else {
      while (lost.ok() && !queue->entries.empty() &&
             (queue->entries.size() > most_waiting || queue->held_bytes > kMostHeldBytes))
        run_until(lock, queue, queue->done() + 1);
    }
    if (fault == Fault::failed) return failed;
    return answer.ok() ? lost : answer;
  }
};

class DeferredBackend::DeferredStream final : public Stream {
 public:
  DeferredStream(std::shared_ptr<State> state, std::shared_ptr<State::Queue> queue)
      : state_(std::move(state)), queue_(std::move(queue)) {}
  ~DeferredStream() override {
    const std::lock_guard lock(state_->mutex);
    queue_->closed = true;
    state_->forget_closed();
  }
  const std::shared_ptr<State::Queue>& queue_in(const State* state) const noexcept {
    static const std::shared_ptr<State::Queue> none;
    return state == state_.get() ? queue_ : none;
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<State::Queue> queue_;
};

std::shared_ptr<DeferredBackend::State::Queue> DeferredBackend::State::queue_of(
    Stream* stream) const {
  const auto* own = dynamic_cast<const DeferredStream*>(stream);
  return own ? own->queue_in(this) : nullptr;
}

namespace {

// Status answers in place of exceptions.
template <class Function>
Status guarded(const Function& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Status::refuse("the host has no memory left for work that waits");
  } catch (const std::exception& error) {
    return Status::fail(keep(error.what()));
  }
}

}  // namespace

DeferredBackend::DeferredBackend(std::shared_ptr<DeferredMemory> memory, std::uint64_t seed)
    : state_(std::make_shared<State>(std::move(memory), seed)) {
  state_->memory->set_before_decommit([this](const void* base, std::size_t bytes) {
    static_cast<void>(synchronise_all());
    const std::lock_guard lock(state_->mutex);
    state_->order.forget(base, bytes);
  });
}

DeferredBackend::~DeferredBackend() {
  state_->memory->set_before_decommit(nullptr);
  const std::lock_guard lock(state_->mutex);
  for (const auto& queue : state_->queues) queue->entries.clear();
  state_->queues.clear();
}

std::unique_ptr<Stream> DeferredBackend::make_stream() {
  const std::lock_guard lock(state_->mutex);
  auto queue = std::make_shared<State::Queue>();
  queue->number = ++state_->streams;
  state_->queues.push_back(queue);
  return std::make_unique<DeferredStream>(state_, std::move(queue));
}

Status DeferredBackend::wait(Stream* stream, Stream* other) noexcept {
  return guarded([&]() -> Status {
    const std::lock_guard lock(state_->mutex);
    if (!state_->lost.ok()) return state_->lost;
    const auto waiting = state_->queue_of(stream), awaited = state_->queue_of(other);
    if (!waiting || !awaited) return Status::fail("wait: no stream of this device");
    if (waiting == awaited || state_->drops_waits) return {};
    State::Entry entry;
    entry.other = awaited;
    entry.other_done = awaited->asked;
    state_->order.wait(waiting->number, awaited->number);
    waiting->entries.push_back(std::move(entry));
    ++waiting->asked;
    return {};
  });
}

Status DeferredBackend::synchronise(Stream* stream) noexcept {
  return guarded([&]() -> Status {
    State::Lock lock(state_->mutex);
    const auto queue = state_->queue_of(stream);
    if (!queue) return Status::fail("synchronise: no stream of this device");
    state_->run_until(lock, queue, queue->asked);
    state_->order.host_waited(queue->number);
    return state_->lost;
  });
}

Status DeferredBackend::synchronise_all() noexcept {
  return guarded([&]() -> Status {
    State::Lock lock(state_->mutex);
    std::vector<std::pair<std::shared_ptr<State::Queue>, std::uint64_t>> all;
    for (const auto& queue : state_->queues) all.emplace_back(queue, queue->asked);
    std::shuffle(all.begin(), all.end(), state_->random);
    for (const auto& [queue, asked] : all) {
      state_->run_until(lock, queue, asked);
      state_->order.host_waited(queue->number);
    }
    return state_->lost;
  });
}

Status DeferredBackend::copy_in(Stream* stream, void* to, const void* from,
                                std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return guarded([&]() -> Status {
    State::Entry entry{.work = Work::copy_in, .name = "copy_in"};
    if (state_->memory->overlaps(from, bytes))
      return Status::fail("copy_in: what is the host's is the device's memory");
    if (const Status found = state_->find(entry, to, bytes, true); !found.ok()) return found;
    const auto* begin = static_cast<const std::byte*>(from);
    entry.held_bytes = bytes;
    entry.run = [to = state_->memory->backing(to),
                 values = std::vector(begin, begin + bytes)]() -> Status {
      std::memcpy(to, values.data(), values.size());
      return {};
    };
    return state_->ask(stream, std::move(entry));
  });
}

Status DeferredBackend::copy_out(Stream* stream, void* to, const void* from,
                                 std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return guarded([&]() -> Status {
    State::Entry entry{.work = Work::copy_out, .name = "copy_out"};
    if (state_->memory->overlaps(to, bytes))
      return Status::fail("copy_out: what is the host's is the device's memory");
    if (const Status found = state_->find(entry, from, bytes, false); !found.ok()) return found;
    entry.run = [to, from = state_->memory->backing(from), bytes]() -> Status {
      std::memcpy(to, from, bytes);
      return {};
    };
    return state_->ask(stream, std::move(entry), true);
  });
}

Status DeferredBackend::copy(Stream* stream, void* to, const void* from,
                             std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return guarded([&]() -> Status {
    State::Entry entry{.work = Work::copy, .name = "copy"};
    for (const void* place : {static_cast<const void*>(to), from})
      if (const Status found = state_->find(entry, place, bytes, place == to); !found.ok())
        return found;
    std::byte* const there = state_->memory->backing(to);
    const std::byte* const here = state_->memory->backing(from);
    if (there < here + bytes && here < there + bytes)
      return Status::fail("copy: the two places overlap");
    entry.run = [there, here, bytes]() -> Status {
      std::memcpy(there, here, bytes);
      return {};
    };
    return state_->ask(stream, std::move(entry));
  });
}

Status DeferredBackend::fill(Stream* stream, void* to, unsigned char value,
                             std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return guarded([&]() -> Status {
    State::Entry entry{.work = Work::fill, .name = "fill"};
    if (const Status found = state_->find(entry, to, bytes, true); !found.ok()) return found;
    entry.run = [to = state_->memory->backing(to), value, bytes]() -> Status {
      std::memset(to, value, bytes);
      return {};
    };
    return state_->ask(stream, std::move(entry));
  });
}

Launched DeferredBackend::run(Stream* stream, std::span<const Launch> launches) noexcept {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Status status = guarded([&]() -> Status {
      const Launch& launch = launches[i];
      State::Entry entry{.work = Work::launch, .name = launch.name};
      Call call{.run = launch.run, .context = launch.context};
      if (!call.run) return Status::fail(keep(std::string(launch.name) + ": no kernel"));
      // A place of no bytes is any address, but not null: that says that nobody wants it.
      const auto take_bytes = [&](void*& data, std::size_t bytes, bool writes) -> Status {
        if (bytes == 0) return {};
        const Status found = state_->find(entry, data, bytes, writes);
        if (found.ok()) data = state_->memory->backing(data);
        return found;
      };
      const auto take = [&](Buffer& buffer, bool writes) -> Status {
        return buffer.data ? take_bytes(buffer.data, buffer.spec.bytes(), writes) : Status{};
      };
      call.inputs.assign(launch.context.inputs.begin(), launch.context.inputs.end());
      call.outputs.assign(launch.context.outputs.begin(), launch.context.outputs.end());
      for (std::size_t n = 0; n < call.inputs.size(); ++n) {
        Buffer& input = call.inputs[n];
        const bool destroyed = launch.context.destroys(n);
        const Status found = take(input, destroyed);
        if (!found.ok()) return found;
      }
      for (Buffer& output : call.outputs) {
        const Status found = take(output, true);
        if (!found.ok()) return found;
      }
      // How long it is is between the kernel and its memory rule; a page after each segment tells.
      if (call.context.workspace)
        if (const Status found = take_bytes(call.context.workspace, 1, true); !found.ok())
          return found;
      if (launch.context.attributes) call.attributes = *launch.context.attributes;
      if (launch.context.destroyed) call.destroyed = *launch.context.destroyed;
      call.context.stream = stream;
      entry.prepared = detail::Ref<const Prepared>(launch.context.prepared);
      entry.run = std::move(call);
      return state_->ask(stream, std::move(entry));
    });
    if (!status.ok()) return {status, i};
  }
  return {{}, launches.size()};
}

std::size_t DeferredBackend::waiting() const {
  const std::lock_guard lock(state_->mutex);
  std::size_t waiting = 0;
  for (const auto& queue : state_->queues)
    for (const State::Entry& entry : queue->entries) waiting += entry.other == nullptr;
  return waiting;
}

void DeferredBackend::set_seed(std::uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  state_->random.seed(seed);
}

bool DeferredBackend::set_at_once(bool at_once) {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->at_once, at_once);
}

void DeferredBackend::set_drops_waits(bool drops) {
  const std::lock_guard lock(state_->mutex);
  state_->drops_waits = drops;
}

void DeferredBackend::set_checks_order(bool checks) {
  const std::lock_guard lock(state_->mutex);
  state_->checks_order = checks;
}

void DeferredBackend::set_most_waiting(std::size_t work) {
  const std::lock_guard lock(state_->mutex);
  state_->most_waiting = work;
}

void DeferredBackend::inject(Work work, Fault fault, std::size_t successes) {
  const std::lock_guard lock(state_->mutex);
  state_->injected[static_cast<std::size_t>(work)] = State::Injected{fault, successes};
}

void DeferredBackend::restore() {
  const std::lock_guard lock(state_->mutex);
  state_->lost = {};
  state_->injected = {};
}

void DeferredBackend::keep_log(bool keep) {
  const std::lock_guard lock(state_->mutex);
  state_->keeps_log = keep;
  state_->log.clear();
}

std::vector<DeferredBackend::Ran> DeferredBackend::log() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log;
}

}  // namespace ebb::tests
