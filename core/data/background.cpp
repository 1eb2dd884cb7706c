#include "ebb/core/data/background.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace ebb::detail {

struct Background::Shared {
  explicit Shared(std::function<void(std::uint64_t)> what) : work(std::move(what)) {}

  void run() {
    for (std::uint64_t number = 0;; ++number) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over || asked > number; });
        if (over) return;
      }
      work(number);
      {
        const std::lock_guard lock(mutex);
        done = number + 1;
      }
      was_done.notify_one();
    }
  }

  const std::function<void(std::uint64_t)> work;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed, was_done;
  std::uint64_t asked = 0;
  std::uint64_t done = 0;
  bool over = false;
};

Background::Background(std::function<void(std::uint64_t)> work)
    : process_(::getpid()),
      shared_(std::make_unique<Shared>(std::move(work))),
      thread_([shared = shared_.get()] { shared->run(); }) {}

Background::~Background() {
  if (is_forked()) {
    // The thread does not exist in this process, and its locks stay locked: abandon it all.
    thread_.detach();
    static_cast<void>(shared_.release());
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->over = true;
  }
  shared_->changed.notify_one();
  thread_.join();
}

void Background::ask() {
  if (is_forked()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    ++shared_->asked;
  }
  shared_->changed.notify_one();
}

bool Background::wait(std::uint64_t number) const {
  if (is_forked()) return false;
  std::unique_lock lock(shared_->mutex);
  shared_->was_done.wait(lock, [&] { return shared_->done > number; });
  return true;
}

bool Background::is_forked() const noexcept { return ::getpid() != process_; }

}  // namespace ebb::detail
