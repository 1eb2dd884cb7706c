#include "ebb/core/device/messenger.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/kernels/workers.h"

namespace ebb::detail {

namespace {

// For how long a process that ends waits for others to hear of it; then the launcher ends the job.
constexpr std::chrono::seconds kPatience(5);

}  // namespace

Messenger& Messenger::instance() {
  static Messenger* const messenger = new Messenger;
  static const struct AtExit {
    ~AtExit() { messenger->leave(); }
  } at_exit;
  return *messenger;
}

void Messenger::end(WorldState& world, const std::string& failure) {
  std::erase(open_, &world);
  world.failure_ = failure;
  for (const auto& operation : world.queue_) operation->state = WorldState::Operation::failed;
  world.queue_.clear();
  changed.notify_all();
}

void Messenger::leave() {
  std::unique_lock lock(mutex);
  const std::vector<WorldState*> open = open_;
  lock.unlock();
  for (WorldState* const world : open) world->enqueue(WorldState::closing());
  lock.lock();
  changed.wait_for(lock, kPatience, [&] { return open_.empty(); });
  is_over_ = true;
  lock.unlock();
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  lock.lock();
  while (!open_.empty()) end(*open_.back(), WorldState::kClosed);
}

void Messenger::call(const std::function<void()>& work) {
  std::packaged_task<void()> task(work);
  const std::string waits = "World: still waits until all ranks open a world" + at(entry());
  std::future<void> done = task.get_future();
  std::unique_lock lock(mutex);
  // Work may wait for the other ranks, which must have heard of failures before.
  changed.wait(
      lock, [&] { return is_over_ || std::ranges::none_of(open_, &WorldState::tells_of_failure); });
  if (is_over_) throw Error("[World] the process is about to end");
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  calls_.push_back(std::move(task));
  wake_.notify_all();
  lock.unlock();
  if (done.wait_for(patience) == std::future_status::timeout) log_warning(waits);
  done.get();
}

Transport* Messenger::job() {
  if (!has_asked_) job_ = connect();
  has_asked_ = true;  // not if it threw
  return job_.get();
}

void Messenger::run() {
  flush_denormals_on_this_thread();
  // About half a millisecond. A sleep takes 0.07 ms at least, and a step of a small model waits for
  // several messages.
  constexpr int kSpins = 1000;
  int idle = 0;
  const auto is_idle = [](const WorldState* world) { return world->queue_.empty(); };
  std::unique_lock lock(mutex);
  while (true) {
    wake_.wait(lock,
               [&] { return is_over_ || !calls_.empty() || !std::ranges::all_of(open_, is_idle); });
    if (!calls_.empty()) {
      std::packaged_task<void()> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
      lock.lock();
      continue;
    }
    if (is_over_) break;
    const std::vector<WorldState*> open = open_;
    lock.unlock();
    bool any = false;
    for (WorldState* const world : open) any = world->advance() || any;
    // Other ranks may need this processor to get on.
    if (any)
      idle = 0;
    else if (++idle < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
  // A launcher ends the job of a process that leaves it with a world that was never closed.
  if (!open_.empty()) static_cast<void>(job_.release());
  job_.reset();
}

}  // namespace ebb::detail
