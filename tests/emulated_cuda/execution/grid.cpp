#include "ebb/tests/emulated_cuda/execution/grid.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "ebb/tests/emulated_cuda/execution/block.h"
#include "ebb/tests/emulated_cuda/execution/shared_memory.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

constexpr std::size_t kSignalStackBytes = 256 << 10;

struct Processor {
  Block block;
  SharedMemory shared;
  const pthread_t thread = ::pthread_self();
};

// State of the executing thread, made on it. A child of fork() has another such thread and makes
// its own.
Processor* processor = nullptr;

bool passes_on = false;
struct sigaction before[2];  // of SIGSEGV and SIGBUS

// Says what is wrong with the address: a device address that did not reach the kernel in its
// arguments, one that is not mapped, or none of the device's.
std::string describe_fault(const void* address) {
  char text[160];
  AddressSpace& space = address_space();
  if (space.holds(address))
    std::snprintf(text, sizeof(text),
                  "device address %p is used as it is: pointers reach a kernel in its arguments",
                  address);
  else if (const void* device = space.device_address(address))
    std::snprintf(text, sizeof(text), "nothing is mapped at device address %p", device);
  else
    std::snprintf(text, sizeof(text), "address %p is not the device's", address);
  return text;
}

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

// Rewrites the context so that returning from the signal handler enters on_fault() on the fiber's
// stack. The signal is over then.
void return_to_fault(void* context, void* stack, const void* address) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto top = reinterpret_cast<std::uintptr_t>(stack);
#if defined(__x86_64__)
  machine.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
  machine.gregs[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(address));
  machine.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(&on_fault));
#elif defined(__aarch64__)
  machine.sp = top;
  machine.regs[0] = reinterpret_cast<std::uintptr_t>(address);
  machine.pc = reinterpret_cast<std::uintptr_t>(&on_fault);
#else
  static_cast<void>(machine), static_cast<void>(top), static_cast<void>(address);
  std::abort();
#endif
}

void say(const char* text) { static_cast<void>(!::write(2, text, std::strlen(text))); }

void handle(int signal, siginfo_t* info, void* context) {
  if (processor && ::pthread_equal(::pthread_self(), processor->thread) &&
      processor->block.is_running())
    return return_to_fault(context, processor->block.fiber().top(), info->si_addr);
  if (address_space().holds(info->si_addr)) say("emulated CUDA: the host touched device memory\n");
  const struct sigaction& old = before[signal == SIGBUS];
  if (std::exchange(passes_on, true)) {  // the earlier handler raised it again
    ::signal(signal, SIG_DFL);
  } else if (old.sa_flags & SA_SIGINFO) {
    old.sa_sigaction(signal, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // runs the instruction again, which ends the process
  }
}

// Installs the handlers, again after a test program has installed its own.
void arm_faults() {
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now = {};
    ::sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle) continue;
    before[signal == SIGBUS] = now;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(signal, &action, nullptr);
  }
}

Processor& own_processor() {
  if (!processor) {
    processor = new Processor;
    stack_t signals = {};  // needed when a fiber's own stack is full
    if (::sigaltstack(nullptr, &signals); signals.ss_flags & SS_DISABLE) {
      signals = {};
      signals.ss_size = kSignalStackBytes;
      signals.ss_sp = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ::sigaltstack(&signals, nullptr);
    }
  }
  arm_faults();
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
  own.block.end_launch();
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
