#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/transport.h"

namespace ebb::detail {

class WorldState;

// The thread that makes all calls of a Transport, for all worlds of the process: libraries want
// them from one thread, and transfers go on while other threads compute. Started when a world is
// first asked for.
class Messenger : NoCopy {
 public:
  // Lives as long as the process: a static object may hold a world, and go later.
  static Messenger& instance();

  // Runs `work` on the thread and waits for it. Rethrows its exception.
  void call(const std::function<void()>& work);
  // With the mutex: a world has something to do.
  void wake() { wake_.notify_all(); }

  // On the thread. The job, connected at the first call; null: this process is alone.
  Transport* job();
  // With the mutex: a world of several ranks begins, or is over.
  void open(WorldState& world) { open_.push_back(&world); }
  void end(WorldState& world, const std::string& failure);

  std::mutex mutex;                 // guards the worlds' queues
  std::condition_variable changed;  // something that somebody waits for may have happened
  std::chrono::milliseconds patience{30'000};  // of a rank, before it says what it waits for

 private:
  // The process ends, and its worlds with it.
  void leave();
  void run();

  // Guarded by the mutex.
  std::thread thread_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::deque<std::packaged_task<void()>> calls_;
  std::vector<WorldState*> open_;

  // Of the thread.
  bool has_asked_ = false;
  std::unique_ptr<Transport> job_;
};

}  // namespace ebb::detail
