// The threads of a block, as fibers of the executing thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/execution/fiber.h"
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

// One fiber runs thread after thread as long as none has to wait. Only a thread that waits keeps
// its fiber; another fiber runs the rest. So threads that never synchronise cost hardly more than a
// loop. Under the thread sanitizer each thread of a block has a fiber of its own.
class Block {
 public:
  static constexpr int kMostThreads = 1024;
  static constexpr int kLanes = 32;

  Block();
  void begin_launch(const KernelCall& call, dim3 threads, Random& random);
  Outcome run();
  void end_launch();  // makes the blocks' writes visible to what comes after
  // Runs a function on a fiber, for its outcome or that of a fault.
  Outcome run_alone(const std::function<Outcome()>& function);

  // Called by the running thread.
  void wait_for_block(const char* file, int line);
  std::uint64_t exchange(unsigned mask, std::uint64_t value, int source_lane);
  unsigned ballot(unsigned mask, int predicate);
  int lane() const noexcept { return current_ % kLanes; }
  // Ends the block; none of its threads goes on.
  [[noreturn]] void fail(cudaError_t code, std::string text);

  bool is_running() const noexcept { return fiber_ != nullptr; }
  Fiber& fiber() noexcept { return *fiber_; }

 private:
  enum class State : unsigned char { fresh, runs, ready, at_barrier, at_warp, done };
  enum class Operation : unsigned char { exchange, ballot };
  struct Thread {
    State state = State::fresh;
    Operation operation = Operation::exchange;
    int source = 0;
    std::uint64_t value = 0;  // given, then received
    Fiber* fiber = nullptr;
    const char* file = nullptr;
    int line = 0;
    unsigned barriers = 0;  // passed
  };

  // Takes the text from a function, so that its strings are destroyed before leave(): nothing
  // unwinds this stack.
  template <class Text>
  [[noreturn]] void fail_saying(const Text& text) {
    outcome_ = {cudaErrorLaunchFailure, text()};
    leave();
    __builtin_unreachable();
  }
  static void enter();
  [[noreturn]] void carry();
  void run_thread(int thread);
  void make_fibers(std::size_t count);  // at least so many
  Fiber* fiber_to_start();
  void wait();  // until the current thread is ready
  void next();  // continues a thread, or ends when all are done
  void leave();
  void make_ready(int thread);
  void finish_warp(int first);
  std::uint64_t meet_warp(Operation operation, unsigned mask, std::uint64_t value, int source);
  [[noreturn]] void fail_stuck();
  std::string name_of(int thread) const;

  const KernelCall* call_ = nullptr;
  int threads_count_ = 0;
  bool ready_first_ = true, newest_first_ = false;
  std::vector<uint3> places_;
  std::vector<int> order_;
  std::vector<Thread> threads_;
  std::vector<int> at_warp_;  // number of waiting lanes, by warp

  int current_ = 0;
  int started_ = 0, done_ = 0, at_barrier_ = 0;
  std::vector<int> ready_;  // a ring: each thread is in it at most once
  std::size_t first_ready_ = 0, ready_count_ = 0;
  Outcome outcome_;
  const std::function<Outcome()>* alone_ = nullptr;

  Fiber own_;
  Fiber* fiber_ = nullptr;  // the running one; null outside of a block
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::size_t blocks_ = 0;  // run so far
  // The last block of a launch whose races are looked for: it takes a hundred times as long.
  static constexpr std::size_t kBlocksLookedAt = 32;
  std::size_t last_looked_at_ = 0;
  bool looks() const noexcept { return alone_ || blocks_ <= last_looked_at_; }

  // Names by which the thread sanitizer knows a launch's begin, its end, and barriers. A block's
  // barriers have two names in turn: with one, a thread that leaves late would seem to come after
  // all that others did before the next barrier. Blocks in sequence have different ones.
  char begun_ = 0, ended_ = 0, barriers_[256][2] = {};
};

}  // namespace ebb::emulated
