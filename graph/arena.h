#pragma once
#include "ebb/allocator/pool.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/plan.h"

namespace ebb::detail {

// The block of a pool that programs keep their intermediate values in, one program at a time. It
// holds nothing between runs: anyone short of memory may take it then. With it goes page-locked
// memory of the host for the values that programs move there and for large feeds, which stays until
// close.
class Arena : NoCopy {
 public:
  // `purpose`, static text: of its requests, in messages.
  Arena(memory::Pool& pool, Runtime& runtime, const char* purpose) noexcept
      : pool_(pool), runtime_(runtime), purpose_(purpose) {}

  // Makes it large enough for the plan, with memory. Throws OutOfMemory; the old one stays usable.
  void provide(const memory::Plan& plan);
  // Null while there is none.
  std::byte* data() const noexcept {
    return block_ ? static_cast<std::byte*>(block_->data()) : nullptr;
  }
  // Bytes of memory that it has; 0 if there is none, or it has been taken away.
  std::size_t allocated_bytes() const noexcept {
    return block_ && pool_.has_memory(block_) ? block_->allocated_bytes() : 0;
  }
  // Null on a simulated device, and while no program moves values.
  std::byte* host_data() const noexcept {
    return host_block_ ? static_cast<std::byte*>(host_block_->data()) : nullptr;
  }
  std::size_t host_bytes() const noexcept { return host_bytes_; }
  // Page-locked memory for the feeds of a run, once the copies of the run before are made. Null if
  // the host locks no more.
  std::byte* staging(std::size_t bytes);
  std::size_t staged_bytes() const noexcept { return staging_ ? staging_->allocated_bytes() : 0; }
  void give_up_host() noexcept;
  // The pool has been closed.
  void forget() noexcept {
    block_ = nullptr;
    give_up_host();
  }

  // Lets others take it from the end of the scope on.
  class Use : NoCopy {
   public:
    explicit Use(Arena& arena) noexcept : arena_(arena) {}
    ~Use() {
      if (arena_.block_) arena_.pool_.rest(arena_.block_);
    }

   private:
    Arena& arena_;
  };

 private:
  void provide_block(const memory::Plan& plan);
  bool provide_host(const memory::Plan& plan);  // whether it is new
  void give_up_values() noexcept;
  void restore() noexcept;  // the previous one

  memory::Pool& pool_;
  Runtime& runtime_;
  const char* const purpose_;
  memory::Block* block_ = nullptr;
  memory::Request request_;  // the request that allocated it
  memory::Composition composition_;
  std::unique_ptr<memory::Pool> host_pool_, staging_pool_;
  memory::Block *host_block_ = nullptr, *staging_ = nullptr;
  std::size_t host_bytes_ = 0;  // of programs on a simulated device too
};

}  // namespace ebb::detail
