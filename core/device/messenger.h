#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
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
  static Messenger& instance();
  // Leaves the job, unless a world was never closed: the launcher then ends the job.
  ~Messenger();

  // Runs `work` on the thread and waits for it. Rethrows its exception.
  void call(const std::function<void()>& work);
  // With the mutex: the world has something to do.
  void add(WorldState& world);

  // On the thread. The job, connected at the first call; null: this process is alone.
  Transport* job();
  // On the thread: so many more worlds are open.
  void open(int more) noexcept { open_worlds_ += more; }

  std::mutex mutex;                 // guards the worlds' queues
  std::condition_variable changed;  // something that somebody waits for may have happened

 private:
  void run();

  // Guarded by the mutex.
  std::thread thread_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::deque<std::function<void()>> calls_;
  std::vector<WorldState*> busy_;

  // Of the thread.
  bool has_asked_ = false;
  std::unique_ptr<Transport> job_;
  int open_worlds_ = 0;
};

}  // namespace ebb::detail
