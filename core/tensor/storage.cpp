#include "ebb/core/tensor/storage.h"

#include <exception>

namespace ebb::detail {

using memory::Category;

namespace {
// The upper bits identify the thread, so that no other thread's serial lies between two of its own.
std::uint64_t first_serial() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return threads.fetch_add(1, std::memory_order_relaxed) << 40;
}
}  // namespace

std::uint64_t Storage::next_serial() noexcept {
  thread_local std::uint64_t next = first_serial();
  return next++;
}

void Storage::wait_for_last_user(Stream* stream) const {
  const Lock lock(*this);
  device_.runtime().wait(stream, last_user_);
  last_user_ = stream;
}

// If it is not the last user, two threads have used the memory at once: the next user waits for
// all.
void Storage::require_last_user(Stream* stream) const noexcept {
  const Lock lock(*this);
  if (last_user_ != stream) last_user_ = memory::Block::many_users();
}

void Storage::copy_in(std::size_t offset, const void* from, std::size_t bytes) const {
  in_order([&](Runtime& runtime, Stream* stream) {
    runtime.copy_in(stream, data() + offset, from, bytes);
  });
}

void Storage::copy_out(std::size_t offset, void* to, std::size_t bytes) const {
  in_order([&](Runtime& runtime, Stream* stream) {
    runtime.copy_out(stream, to, data() + offset, bytes);
  });
}

void Storage::fill(unsigned char value) const {
  in_order([&](Runtime& runtime, Stream* stream) { runtime.fill(stream, data(), value, bytes()); });
}

HostView Storage::view(std::size_t offset, std::size_t bytes) const {
  return in_order([&](Runtime& runtime, Stream* stream) {
    return HostView(runtime, stream, data() + offset, bytes);
  });
}

// A device that refuses this has worse problems than stale memory.
void Storage::poison() const noexcept {
  try {
    fill(kPoison);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

void Storage::keep() noexcept {
  const Lock lock(*this);
  if (keepers_++ == 0 && block_->category() == Category::temporary)
    set_category(Category::activation);
}

void Storage::unkeep() noexcept {
  const Lock lock(*this);
  if (--keepers_ == 0 && block_->category() == Category::activation)
    set_category(Category::temporary);
}

}  // namespace ebb::detail
