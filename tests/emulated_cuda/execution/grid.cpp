#include "ebb/tests/emulated_cuda/execution/grid.h"

#include <numeric>

#include "ebb/tests/emulated_cuda/execution/block.h"
#include "ebb/tests/emulated_cuda/execution/faults.h"
#include "ebb/tests/emulated_cuda/execution/shared_memory.h"

namespace ebb::emulated {
namespace {

struct Processor {
  Block block;
  SharedMemory shared;
};

// State of the executing thread, made on it. A child of fork() has another such thread and makes
// its own.
Processor* processor = nullptr;

[[gnu::noinline]] void fail_at(const void* address) {
  std::string text = describe_fault(address);
  if (processor->block.fiber().is_below(address)) text = "a thread's stack is full";
  processor->block.fail(cudaErrorIllegalAddress, std::move(text));
}

// Runs on the faulting fiber's stack, from its top: its frames are dead.
void on_fault(const void* address) {
  processor->block.fiber().abandon();
  fail_at(address);
}

Processor& own_processor() {
  if (!processor) {
    processor = new Processor;
    catch_faults(
        [](const void*) -> void* {
          return processor && processor->block.is_running() ? processor->block.fiber().top()
                                                            : nullptr;
        },
        on_fault);
  } else {
    arm_faults();
  }
  return *processor;
}

// Visits 0 to n - 1 once each: from a random start, with a random step coprime to n.
class AnyOrder {
 public:
  AnyOrder(std::uint64_t n, Random& random) : n_(n), at_(random.below(n)), step_(1) {
    if (n < 3) return;
    do {
      step_ = 1 + random.below(n - 1);
    } while (std::gcd(step_, n) != 1);
  }
  std::uint64_t operator()() {
    at_ = (at_ + step_) % n_;
    return at_;
  }

 private:
  std::uint64_t n_, at_, step_;
};

}  // namespace

void forget_processor() noexcept { processor = nullptr; }

Outcome run_grid(const KernelCall& call, dim3 grid, dim3 block, Random& random) {
  Processor& own = own_processor();
  own.block.begin_launch(call, block, random);
  own.shared.begin_launch(call.kernel);
  gridDim = grid;
  blockDim = block;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  AnyOrder order(blocks, random);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = order();
    blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                static_cast<unsigned>(at / grid.x / grid.y)};
    own.shared.begin_block();
    Outcome outcome = own.block.run();
    own.shared.end_block();
    if (!outcome.ok()) {
      outcome.text = "block (" + std::to_string(blockIdx.x) + ", " + std::to_string(blockIdx.y) +
                     ", " + std::to_string(blockIdx.z) + "): " + outcome.text;
      return outcome;
    }
  }
  return {};
}

Outcome run_guarded(const std::function<Outcome()>& function) {
  return own_processor().block.run_alone(function);
}

}  // namespace ebb::emulated

using ebb::emulated::processor;

void ebb_emulated_barrier(const char* file, int line) {
  processor->block.wait_for_block(file, line);
}
std::uint64_t ebb_emulated_exchange(unsigned mask, std::uint64_t value, int source_lane) {
  return processor->block.exchange(mask, value, source_lane);
}
unsigned ebb_emulated_ballot(unsigned mask, int predicate) {
  return processor->block.ballot(mask, predicate);
}
int ebb_emulated_lane() { return processor->block.lane(); }
