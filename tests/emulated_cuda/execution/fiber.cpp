#include "ebb/tests/emulated_cuda/execution/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <new>
#include <utility>

#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/memory/page.h"

// switch_stack() saves the running stack's position in *from and continues the stack at `to`.
// prepare_stack() prepares a new stack, with a top aligned to 16, and returns its position. The
// first step there is entry(), which must never return.
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
#endif

namespace ebb::emulated {
namespace {

#if defined(__x86_64__)
void switch_stack(void** from, void* to) noexcept { ebb_emulated_switch(from, to); }

void* prepare_stack(void* top, void (*entry)()) noexcept {
  // Six registers, the address to go on at, and entry()'s own return address (null).
  auto* at = static_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) at[i] = nullptr;
  at[6] = reinterpret_cast<void*>(entry);
  return at;
}
#else  // slower: it asks the system for each switch
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
#endif

constexpr std::size_t kStackBytes = std::size_t{sanitizers::kAddress ? 512 : 128} << 10;

}  // namespace

Fiber::Fiber() : shadow_(sanitizers::own_shadow()) {
  pthread_attr_t attributes;
  void* bottom = nullptr;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &bottom, &bytes_);
  ::pthread_attr_destroy(&attributes);
  bottom_ = static_cast<std::byte*>(bottom);
}

Fiber::Fiber(void (*entry)()) : bytes_(kStackBytes), entry_(entry) {
  void* const base = ::mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(base, kPage, PROT_NONE);
  bottom_ = static_cast<std::byte*>(base) + kPage;
  reset();
}

Fiber::~Fiber() {
  if (!entry_) return;
  if (shadow_) sanitizers::drop_shadow(shadow_);
  sanitizers::allow(bottom_, bytes_);
  ::munmap(bottom_ - kPage, kPage + bytes_);
}

void Fiber::reset() noexcept {
  if (shadow_) sanitizers::drop_shadow(shadow_);
  shadow_ = sanitizers::make_shadow();
  if constexpr (sanitizers::kThread)  // a new stack, which no thread has written to
    ::mmap(bottom_, bytes_, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  abandon();
  fake_stack_ = nullptr;
  stands_ = prepare_stack(top(), entry_);
}

void Fiber::count_accesses(bool counts) noexcept {
  if (std::exchange(accesses_count_, counts) != counts) sanitizers::count_accesses(counts);
}

void Fiber::release(void* at, const Fiber& running) noexcept {
  if constexpr (!sanitizers::kThread) return;
  sanitizers::switch_shadow(shadow_);
  count_accesses(true);
  sanitizers::release(at);
  sanitizers::switch_shadow(running.shadow_);
}

void Fiber::abandon() noexcept { sanitizers::allow(bottom_, bytes_); }

void Fiber::go_to(Fiber& other) noexcept {
  sanitizers::leave_stack(&fake_stack_, other.bottom_, other.bytes_);
  sanitizers::switch_shadow(other.shadow_);
  switch_stack(&stands_, other.stands_);
  sanitizers::enter_stack(fake_stack_);
}

void Fiber::arrived() noexcept { sanitizers::enter_stack(nullptr); }

bool Fiber::is_below(const void* address) const noexcept {
  const auto* at = static_cast<const std::byte*>(address);
  return entry_ && at >= bottom_ - kPage && at < bottom_;
}

}  // namespace ebb::emulated
