#include "ebb/tests/emulated_cuda/execution/block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/options.h"

// The built-in variables that kernels read.
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace ebb::emulated {
namespace {

Block* entering = nullptr;  // its fiber begins; there is one executing thread

bool is_at(std::string_view file, int line, std::string_view place) {
  const std::size_t colon = place.find(':');
  return colon != place.npos && file.ends_with(place.substr(0, colon)) &&
         std::atoi(place.data() + colon + 1) == line;
}

}  // namespace

Block::Block() {
  places_.reserve(kMostThreads);
  threads_.resize(kMostThreads);
  order_.reserve(kMostThreads);
  ready_.resize(kMostThreads);
  fibers_.reserve(kMostThreads);
}

void Block::begin_launch(const KernelCall& call, dim3 threads, Random& random) {
  call_ = &call;
  places_.clear();
  for (unsigned z = 0; z < threads.z; ++z)
    for (unsigned y = 0; y < threads.y; ++y)
      for (unsigned x = 0; x < threads.x; ++x) places_.push_back({x, y, z});
  threads_count_ = static_cast<int>(places_.size());
  last_looked_at_ = blocks_ + kBlocksLookedAt;
  // The thread sanitizer takes a new fiber to come after all that its maker has done.
  if constexpr (sanitizers::kThread) make_fibers(places_.size() + 1);
  at_warp_.assign(static_cast<std::size_t>(threads_count_ + kLanes - 1) / kLanes, 0);

  // Warps in random order; their lanes in order, backwards, or in random order.
  std::vector<int> warps(at_warp_.size());
  for (std::size_t i = 0; i < warps.size(); ++i) warps[i] = static_cast<int>(i);
  std::shuffle(warps.begin(), warps.end(), random);
  const auto lanes = random.below(3);
  order_.clear();
  for (const int warp : warps) {
    const auto first = order_.end() - order_.begin();
    for (int lane = 0; lane < kLanes && warp * kLanes + lane < threads_count_; ++lane)
      order_.push_back(warp * kLanes + lane);
    if (lanes == 1) std::reverse(order_.begin() + first, order_.end());
    if (lanes == 2) std::shuffle(order_.begin() + first, order_.end(), random);
  }
  ready_first_ = random.below(2) == 0;
  newest_first_ = random.below(2) == 0;
}

Outcome Block::run() {
  for (int i = 0; i < threads_count_; ++i) {
    threads_[static_cast<std::size_t>(i)].state = State::fresh;
    threads_[static_cast<std::size_t>(i)].barriers = 0;
  }
  ++blocks_;
  std::fill(at_warp_.begin(), at_warp_.end(), 0);
  started_ = done_ = at_barrier_ = 0;
  first_ready_ = ready_count_ = 0;
  outcome_ = {};
  entering = this;
  fiber_ = &own_;
  sanitizers::release(&begun_);
  next();
  fiber_ = nullptr;
  if (!outcome_.ok()) {  // waiting fibers never continue
    idle_.clear();
    for (const auto& fiber : fibers_) {
      fiber->release(&ended_, own_);
      fiber->reset();
      if constexpr (!sanitizers::kThread) idle_.push_back(fiber.get());
    }
  }
  if (!outcome_.ok()) end_launch();
  return std::move(outcome_);
}

void Block::end_launch() { sanitizers::acquire(&ended_); }

Outcome Block::run_alone(const std::function<Outcome()>& function) {
  alone_ = &function;
  threads_count_ = 0;
  places_.clear();
  if constexpr (sanitizers::kThread) make_fibers(1);
  Outcome outcome = run();
  end_launch();
  return outcome;
}

void Block::enter() {
  Fiber::arrived();
  entering->carry();
}

// A fiber's loop: runs one thread of the block after the other.
void Block::carry() {
  while (true) {
    const bool looks = this->looks();
    fiber_->count_accesses(looks);
    if (looks) sanitizers::acquire(&begun_);
    if (alone_) {
      outcome_ = (*std::exchange(alone_, nullptr))();
    } else {
      do {
        run_thread(order_[static_cast<std::size_t>(started_++)]);
      } while (!sanitizers::kThread && started_ < threads_count_ &&
               (!ready_first_ || ready_count_ == 0));
    }
    if (looks) sanitizers::release(&ended_);
    if constexpr (!sanitizers::kThread) idle_.push_back(fiber_);
    next();
  }
}

void Block::make_fibers(std::size_t count) {
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>(enter));
}

Fiber* Block::fiber_to_start() {
  if constexpr (sanitizers::kThread) {
    // Neighbouring blocks have their threads on different fibers, since they may race.
    const std::size_t place =
        alone_ ? 0 : static_cast<std::size_t>(order_[static_cast<std::size_t>(started_)]) + blocks_;
    return fibers_[place % (places_.size() + 1)].get();
  }
  if (idle_.empty()) {
    make_fibers(fibers_.size() + 1);
    return fibers_.back().get();
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Block::run_thread(int thread) {
  current_ = thread;
  threadIdx = places_[static_cast<std::size_t>(thread)];
  threads_[static_cast<std::size_t>(thread)].state = State::runs;
  call_->invoke(call_->kernel, call_->arguments);
  threads_[static_cast<std::size_t>(current_)].state = State::done;
  ++done_;
}

void Block::make_ready(int thread) {
  threads_[static_cast<std::size_t>(thread)].state = State::ready;
  ready_[(first_ready_ + ready_count_++) % kMostThreads] = thread;
}

void Block::next() {
  Fiber* to = nullptr;
  if (ready_count_ > 0 && (ready_first_ || started_ == threads_count_)) {
    const std::size_t place = first_ready_ + (newest_first_ ? ready_count_ - 1 : 0);
    const int thread = ready_[place % kMostThreads];
    if (!newest_first_) ++first_ready_;
    --ready_count_;
    Thread& chosen = threads_[static_cast<std::size_t>(thread)];
    chosen.state = State::runs;
    current_ = thread;
    threadIdx = places_[static_cast<std::size_t>(thread)];
    to = chosen.fiber;
  } else if (started_ < threads_count_ || alone_) {
    to = fiber_to_start();
  } else if (done_ == threads_count_) {
    to = &own_;
  } else {
    fail_stuck();
  }
  if (to == fiber_) return;
  Fiber* const from = std::exchange(fiber_, to);
  from->go_to(*to);
}

void Block::leave() {
  Fiber* const from = std::exchange(fiber_, &own_);
  from->go_to(own_);
}

void Block::fail(cudaError_t code, std::string text) {
  outcome_ = {code, std::move(text)};
  leave();
  __builtin_unreachable();
}

void Block::wait() {
  threads_[static_cast<std::size_t>(current_)].fiber = fiber_;
  next();
}

void Block::wait_for_block(const char* file, int line) {
  if (options().without && is_at(file, line, options().without)) return;
  Thread& own = threads_[static_cast<std::size_t>(current_)];
  own.file = file;
  own.line = line;
  char& barrier = barriers_[blocks_ % std::size(barriers_)][own.barriers++ % 2];
  if (looks()) sanitizers::release(&barrier);
  if (++at_barrier_ < threads_count_) {
    own.state = State::at_barrier;
    wait();
    if (looks()) sanitizers::acquire(&barrier);
    return;
  }
  if (looks()) sanitizers::acquire(&barrier);
  at_barrier_ = 0;
  for (const int thread : order_) {
    const Thread& other = threads_[static_cast<std::size_t>(thread)];
    if (other.line != line || std::strcmp(other.file, file) != 0)
      fail_saying([&] {
        return name_of(thread) + " waits at line " + std::to_string(other.line) + " of " +
               other.file + ", but " + name_of(current_) + " at line " + std::to_string(line) +
               " of " + file;
      });
    if (thread != current_) make_ready(thread);
  }
}

std::uint64_t Block::meet_warp(Operation operation, unsigned mask, std::uint64_t value,
                               int source) {
  if (mask != ~0u)
    fail_saying([&] { return name_of(current_) + " meets a part of its warp: not emulated"; });
  const int first = current_ / kLanes * kLanes;
  Thread& own = threads_[static_cast<std::size_t>(current_)];
  own.operation = operation;
  own.value = value;
  own.source = source;
  int& waiting = at_warp_[static_cast<std::size_t>(first / kLanes)];
  if (++waiting == kLanes) {
    waiting = 0;
    finish_warp(first);
  } else {
    own.state = State::at_warp;
    wait();
  }
  return own.value;
}

// Every lane of the warp has arrived: gives each its value and makes it ready.
void Block::finish_warp(int first) {
  std::uint64_t given[kLanes];
  const Thread& own = threads_[static_cast<std::size_t>(current_)];
  unsigned set = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const Thread& thread = threads_[static_cast<std::size_t>(first + lane)];
    if (thread.operation != own.operation)
      fail_saying([&] {
        return name_of(first + lane) + " and " + name_of(current_) +
               " meet in different operations of their warp";
      });
    given[lane] = thread.value;
    set |= thread.value ? 1u << lane : 0;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    Thread& thread = threads_[static_cast<std::size_t>(first + lane)];
    thread.value = thread.operation == Operation::ballot ? set : given[thread.source];
    if (first + lane != current_) make_ready(first + lane);
  }
}

std::uint64_t Block::exchange(unsigned mask, std::uint64_t value, int source_lane) {
  return meet_warp(Operation::exchange, mask, value, source_lane);
}

unsigned Block::ballot(unsigned mask, int predicate) {
  return static_cast<unsigned>(meet_warp(Operation::ballot, mask, predicate != 0, 0));
}

std::string Block::name_of(int thread) const {
  const uint3 at = places_[static_cast<std::size_t>(thread)];
  return "thread (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " +
         std::to_string(at.z) + ")";
}

// Nobody can go on: some threads wait at a barrier or warp operation that others never reach.
void Block::fail_stuck() {
  const auto state_of = [&](int thread) {
    return threads_[static_cast<std::size_t>(thread)].state;
  };
  for (int i = 0; i < threads_count_; ++i) {
    if (state_of(i) != State::at_warp) continue;
    const int first = i / kLanes * kLanes;
    int other = first;
    while (other < threads_count_ && state_of(other) == State::at_warp) ++other;
    fail_saying([&] {
      return name_of(i) + " waits in an operation of its warp for lane " +
             std::to_string(other - first) + ", which never comes";
    });
  }
  for (int i = 0; i < threads_count_; ++i) {
    if (state_of(i) == State::at_barrier) continue;
    const auto waits = std::find_if(threads_.begin(), threads_.end(), [](const Thread& thread) {
      return thread.state == State::at_barrier;
    });
    fail_saying([&] {
      return name_of(static_cast<int>(waits - threads_.begin())) +
             " waits at the barrier in line " + std::to_string(waits->line) + " of " + waits->file +
             ", which " + name_of(i) + " never reaches";
    });
  }
  __builtin_unreachable();
}

}  // namespace ebb::emulated
