#include "ebb/tests/emulated_cuda/execution/context_switch.h"

#include <cstdint>

#if defined(__x86_64__)

// Saves and restores the registers that a callee has to preserve, and nothing else.
asm(R"(
  .text
  .p2align 4
  .hidden ebb_emulated_switch
  .globl ebb_emulated_switch
  .type ebb_emulated_switch, @function
ebb_emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ebb_emulated_switch, .-ebb_emulated_switch
)");

extern "C" void ebb_emulated_switch(void** from, void* to) noexcept;

namespace ebb::emulated {

void switch_stack(void** from, void* to) noexcept { ebb_emulated_switch(from, to); }

void* prepare_stack(void* top, void (*entry)()) noexcept {
  // Six registers, the address to go on at, and entry()'s own return address (null).
  auto* at = static_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) at[i] = nullptr;
  at[6] = reinterpret_cast<void*>(entry);
  return at;
}

}  // namespace ebb::emulated

#else  // slower: it asks the system for each switch

#include <ucontext.h>

#include <new>

namespace ebb::emulated {

// The context lies on its own stack.
void switch_stack(void** from, void* to) noexcept {
  ucontext_t here;
  *from = &here;
  ::swapcontext(&here, static_cast<ucontext_t*>(to));
}

void* prepare_stack(void* top, void (*entry)()) noexcept {
  // The part of the stack below the context. No stack here is smaller than this.
  constexpr std::uintptr_t kBytes = 48 << 10;
  auto* context = new (static_cast<char*>(top) - (sizeof(ucontext_t) + 15) / 16 * 16) ucontext_t;
  ::getcontext(context);
  context->uc_stack.ss_sp = reinterpret_cast<char*>(context) - kBytes;
  context->uc_stack.ss_size = kBytes;
  context->uc_link = nullptr;
  ::makecontext(context, entry, 0);
  return context;
}

}  // namespace ebb::emulated

#endif
