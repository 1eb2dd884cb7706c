#include "ebb/core/tensor/storage.h"

#include <exception>

namespace ebb::detail {

using memory::Category;

namespace {
// Memory of another library. As an input it keeps its category.
struct Borrowed final : memory::Block {
  Borrowed(std::byte* data, std::size_t bytes, std::shared_ptr<void> from)
      : owner(std::move(from)) {
    data_ = data;
    requested_bytes_ = allocated_bytes_ = bytes;
    category_ = Category::input;
  }
  const std::shared_ptr<void> owner;
};
}  // namespace

Storage::Storage(Device device, std::byte* data, std::size_t bytes, bool is_read_only,
                 std::shared_ptr<void> owner)
    : device_(std::move(device)),
      block_(new Borrowed(data, bytes, std::move(owner))),
      is_borrowed_(true),
      is_read_only_(is_read_only),
      last_user_(nullptr) {
  device_.runtime().borrowed_bytes() += bytes;
}

// The owner may free the memory at once, so work on it is waited for.
void Storage::give_back() const noexcept {
  Runtime& runtime = device_.runtime();
  try {
    Stream* const stream = runtime.stream();
    runtime.wait(stream, last_user_);
    runtime.synchronise(stream);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a lost device does no work
  }
  runtime.borrowed_bytes() -= bytes();
  delete static_cast<Borrowed*>(block_);
}

// The upper bits identify the thread, so that no other thread's serial lies between two of its own.
std::uint64_t Storage::next_serial() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  thread_local std::uint64_t next = threads.fetch_add(1, std::memory_order_relaxed) << 40;
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
  if (keepers_++ == 0 && !in_shares_ && block_->category() == Category::temporary)
    set_category(Category::activation);
}

void Storage::unkeep() noexcept {
  const Lock lock(*this);
  if (--keepers_ == 0 && !in_shares_ && block_->category() == Category::activation)
    set_category(Category::temporary);
}

}  // namespace ebb::detail
