#include "ebb/tests/emulated_cuda/execution/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <new>

#include "ebb/tests/emulated_cuda/execution/context_switch.h"
#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/memory/page.h"

namespace ebb::emulated {
namespace {

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
  abandon();
  fake_stack_ = nullptr;
  stands_ = prepare_stack(top(), entry_);
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
