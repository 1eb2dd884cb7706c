#include "ebb/allocator/watch.h"

#include <algorithm>
#include <utility>

#include "ebb/allocator/detail/watchers.h"

namespace ebb::memory {

namespace {
thread_local const detail::Watcher* calling = nullptr;  // the watcher being called on this thread
}  // namespace

bool is_in_watch_call() noexcept { return calling != nullptr; }

Watch::Watch(std::shared_ptr<detail::Watcher> watcher) noexcept : watcher_(std::move(watcher)) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    end();
    watcher_ = std::move(other.watcher_);
  }
  return *this;
}

Watch::~Watch() { end(); }

void Watch::end() noexcept {
  const auto watcher = std::exchange(watcher_, nullptr);
  if (!watcher) return;
  watcher->ended.store(true);
  watcher->all_ended->fetch_add(1, std::memory_order_release);
  const std::uint32_t own = calling == watcher.get() ? 1 : 0;
  for (std::uint32_t calls = watcher->calls.load(); calls > own; calls = watcher->calls.load())
    watcher->calls.wait(calls);
  watcher->empty_if_over();
}

namespace detail {

// Frees the callback. A later caller finds `ended` set and does not call it.
void Watcher::empty_if_over() noexcept {
  if (!ended.load() || calls.load() > 0 || emptied.exchange(true)) return;
  WatchFunction owned;
  owned.swap(call);
}

void Watchers::add(std::shared_ptr<Watcher> watcher) {
  watcher->all_ended = ended_;
  watchers_.push_back(std::move(watcher));
  set_marks();
}

bool Watchers::sweep() noexcept {
  const std::size_t ended = ended_->load(std::memory_order_acquire);
  if (ended == swept_) return false;
  swept_ = ended;
  std::erase_if(watchers_, [](const auto& each) { return each->ended.load(); });
  set_marks();
  return true;
}

void Watchers::set_marks() noexcept {
  alarm_ = std::numeric_limits<std::size_t>::max();
  rearm_ = 0;
  for (const auto& each : watchers_) {
    if (!each->threshold) continue;
    if (each->armed)
      alarm_ = std::min(alarm_, *each->threshold);
    else
      rearm_ = std::max(rearm_, *each->threshold);
  }
}

// Returns the watchers whose thresholds are passed, and disarms them. Inside a watch call it
// returns none: the next request outside reports the thresholds passed there, except to the watcher
// whose own call passed them.
std::vector<std::shared_ptr<Watcher>> Watchers::take_passed(std::size_t allocated) {
  std::vector<std::shared_ptr<Watcher>> passed;
  for (const auto& each : watchers_) {
    if (!each->threshold || !each->armed || allocated <= *each->threshold) continue;
    if (!calling)
      passed.push_back(each);
    else if (each.get() == calling)
      each->armed = false;
  }
  for (const auto& each : passed) each->armed = false;
  set_marks();
  return passed;
}

std::vector<std::shared_ptr<Watcher>> Watchers::of_refusals() const {
  std::vector<std::shared_ptr<Watcher>> found;
  for (const auto& each : watchers_)
    if (!each->threshold) found.push_back(each);
  return found;
}

void Watchers::rearm(std::size_t allocated) noexcept {
  for (const auto& each : watchers_)
    if (each->threshold && allocated <= *each->threshold) each->armed = true;
  set_marks();
}

bool Watchers::tell(const std::vector<std::shared_ptr<Watcher>>& watchers,
                    const Pressure& pressure) {
  if (calling || watchers.empty()) return false;
  struct Call {
    explicit Call(Watcher& watcher) noexcept : watcher(watcher) {
      calling = &watcher;
      watcher.calls.fetch_add(1);
    }
    ~Call() {
      calling = nullptr;
      watcher.calls.fetch_sub(1);
      watcher.calls.notify_all();
      watcher.empty_if_over();
    }
    Watcher& watcher;
  };
  bool told = false;
  for (const auto& each : watchers) {
    const Call call(*each);
    if (each->ended.load()) continue;
    told = true;
    each->call(pressure);
  }
  return told;
}

}  // namespace detail

}  // namespace ebb::memory
