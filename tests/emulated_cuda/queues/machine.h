// The emulated machine: its device and streams, and the order in which their work is done.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "ebb/tests/emulated_cuda/control.h"
#include "ebb/tests/emulated_cuda/options.h"
#include "ebb/tests/emulated_cuda/queues/stream.h"

namespace ebb::emulated {

// Work in a stream waits until somebody synchronises. Then one thread made for it does the work,
// mixed at random with some of the other streams' work, in any order that streams and events allow.
// Work that fails loses the device: its waiting work is dropped, and every later call returns that
// failure.
class Machine {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Lock lock() { return Lock(mutex_); }

  // Everything below is called with the lock held.
  cudaError_t put(Lock& lock, CUstream_st* stream, WorkPtr work);
  // Runs work until the queue has done `done` entries in all.
  void run_until(Lock& lock, const QueuePtr& queue, std::uint64_t done);
  // Whether the queue has done all its work. If not, may do some of it, so that polling makes
  // progress.
  bool poll(Lock& lock, const QueuePtr& queue);
  bool is_stream(const CUstream_st* stream) const { return streams.count(stream) > 0; }
  void push(Lock& lock, const QueuePtr& queue, Entry entry);
  // Takes out the entry that comes after `done` others, when these are done. False: the device was
  // lost. give_back() when it is done.
  bool take(Lock& lock, const QueuePtr& queue, std::uint64_t done);
  void give_back(const QueuePtr& queue) { queue->running = false; }
  // Checks that a stream may be used. To use the default stream is a mistake.
  cudaError_t check_stream(const CUstream_st* stream, const std::string& what);
  QueuePtr make_queue();
  void lose(Outcome why);
  // The failure that a test asked for at this call; cudaSuccess otherwise.
  cudaError_t injected(Fault fault);
  void complain(const std::string& text);
  std::size_t pending() const;
  // In a child of fork(): it has no executing thread, and the waiting work is the parent's.
  void begin_in_child();

  std::set<const CUstream_st*> streams;
  std::set<const CUevent_st*> events;
  std::set<const CUgraph_st*> graphs;
  std::set<const CUgraphExec_st*> execs;
  Outcome lost;  // why the device is lost; its code is cudaSuccess where it is not
  Random random;
  Statistics statistics = {};
  std::atomic<std::uint64_t> library_objects = 0;
  bool at_once = false, drops_waits = false;
  int driver = 0;
  std::atomic<int> capability;
  static constexpr int kCudnn = 91900;
  std::atomic<int> cudnn = kCudnn;  // its version
  std::string last_complaint;
  struct Injected {
    std::size_t successes;
    int code;
  };
  std::array<std::optional<Injected>, kFaults> faults;

  static Machine& get();

 private:
  Machine();
  struct Request {
    QueuePtr queue;
    std::uint64_t done;
    bool once = false;  // one piece of work is enough
    bool over = false;
  };

  void execute();  // the executing thread's loop
  // False: something that another thread does must come first.
  bool serve(Lock& lock, Request& request);
  void ask(Lock& lock, Request request);
  void run_first(Lock& lock, const QueuePtr& queue);
  bool ready(Queue& queue);
  static void settle(Queue& queue);
  QueuePtr first_of(QueuePtr queue);
  QueuePtr any_ready();
  void start();

  std::mutex mutex_;
  std::condition_variable asked_, answered_;
  std::deque<Request*> requests_;
  std::vector<QueuePtr> queues_;
  bool started_ = false;
};

inline Machine& machine() { return Machine::get(); }

}  // namespace ebb::emulated
