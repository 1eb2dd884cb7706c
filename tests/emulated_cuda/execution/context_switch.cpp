#include "ebb/tests/emulated_cuda/execution/context_switch.h"

#include <cstdint>

#if defined(__x86_64__) && !defined(EBB_EMULATED_UCONTEXT)

// What a function keeps for its caller, and nothing else.
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
  // Six registers, where to go on, and the return address that entry() believes it has.
  auto* at = static_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) at[i] = nullptr;
  at[6] = reinterpret_cast<void*>(entry);
  return at;
}

}  // namespace ebb::emulated

#elif defined(__aarch64__) && !defined(EBB_EMULATED_UCONTEXT)

asm(R"(
  .text
  .p2align 4
  .hidden ebb_emulated_switch
  .globl ebb_emulated_switch
  .type ebb_emulated_switch, %function
ebb_emulated_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size ebb_emulated_switch, .-ebb_emulated_switch
)");

extern "C" void ebb_emulated_switch(void** from, void* to) noexcept;

namespace ebb::emulated {

void switch_stack(void** from, void* to) noexcept { ebb_emulated_switch(from, to); }

void* prepare_stack(void* top, void (*entry)()) noexcept {
  auto* at = static_cast<void**>(top) - 20;
  for (int i = 0; i < 20; ++i) at[i] = nullptr;
  at[11] = reinterpret_cast<void*>(entry);  // x30
  return at;
}

}  // namespace ebb::emulated

#else

#include <ucontext.h>

#include <new>

namespace ebb::emulated {

// A context lies on the stack that it belongs to.
void switch_stack(void** from, void* to) noexcept {
  ucontext_t here;
  *from = &here;
  ::swapcontext(&here, static_cast<ucontext_t*>(to));
}

void* prepare_stack(void* top, void (*entry)()) noexcept {
  // Below it, since no stack here is as small.
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
