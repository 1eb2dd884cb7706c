#include "ebb/tests/emulated_cuda/execution/faults.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

constexpr std::size_t kSignalStackBytes = 256 << 10;

void* (*find_stack)(const void*) = nullptr;
void (*land_at)(const void*) = nullptr;
pthread_t catching;
bool catches = false;
bool passes_on = false;
struct sigaction before[2];

struct sigaction& before_of(int signal) {
  return before[signal == SIGBUS];
}

// Rewrites the context so that returning from the signal handler enters land() on the fiber's
// stack. The signal is over then.
void return_to_land(void* context, void* stack, const void* address) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto top = reinterpret_cast<std::uintptr_t>(stack);
#if defined(__x86_64__)
  machine.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
  machine.gregs[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(address));
  machine.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(land_at));
#elif defined(__aarch64__)
  machine.sp = top;
  machine.regs[0] = reinterpret_cast<std::uintptr_t>(address);
  machine.pc = reinterpret_cast<std::uintptr_t>(land_at);
#else
  static_cast<void>(machine), static_cast<void>(top), static_cast<void>(address);
  std::abort();
#endif
}

void say(const char* text) { static_cast<void>(!::write(2, text, std::strlen(text))); }

void handle(int signal, siginfo_t* info, void* context) {
  if (catches && ::pthread_equal(::pthread_self(), catching))
    if (void* const stack = find_stack(info->si_addr)) {
      return_to_land(context, stack, info->si_addr);
      return;
    }
  if (address_space().holds(info->si_addr)) say("emulated CUDA: the host touched device memory\n");
  const struct sigaction& old = before_of(signal);
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

}  // namespace

void catch_faults(void* (*stack)(const void* address), void (*land)(const void* address)) {
  find_stack = stack;
  land_at = land;
  catching = ::pthread_self();
  stack_t signals = {};  // needed when a fiber's own stack is full
  if (::sigaltstack(nullptr, &signals); signals.ss_flags & SS_DISABLE) {
    signals = {};
    signals.ss_size = kSignalStackBytes;
    signals.ss_sp = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::sigaltstack(&signals, nullptr);
  }
  catches = true;
  arm_faults();
}

void arm_faults() {
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now = {};
    ::sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle) continue;
    before_of(signal) = now;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(signal, &action, nullptr);
  }
}

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

}  // namespace ebb::emulated
