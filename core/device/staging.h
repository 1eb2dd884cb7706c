#pragma once
#include <memory>

#include "ebb/core/base/error.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/runtime.h"

namespace ebb::detail {

// Host memory that fills a device. Page-locked if the device has such memory, so that it copies
// while the host goes on.
class Staging : NoCopy {
 public:
  // For copies in the order of `stream`.
  Staging(Runtime& runtime, Stream* stream, std::size_t bytes, const memory::Tag& tag)
      : runtime_(runtime), stream_(stream) {
    if (memory::CachingAllocator* locked = runtime.staging()) {
      try {
        block_ = locked->allocate({bytes, memory::Category::input, tag});
      } catch (const OutOfMemory&) {  // the system locks only so much memory; plain memory will do
      }
    }
    if (!block_) plain_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
  ~Staging() {
    if (!block_) return;
    try {
      wait();
    } catch (const Error&) {  // a lost device reads nothing any more
    }
    runtime_.staging()->free(block_);
  }

  std::byte* data() const noexcept {
    return block_ ? static_cast<std::byte*>(block_->data()) : plain_.get();
  }
  // Returns when the device has read all copies so far.
  void wait() const {
    if (block_) runtime_.synchronise(stream_);
  }
  // The bytes at `offset` must not change until wait() has returned.
  void copy_in(void* to, std::size_t offset, std::size_t bytes) const {
    if (block_)
      runtime_.copy_in_later(stream_, to, data() + offset, bytes);
    else
      runtime_.copy_in(stream_, to, data() + offset, bytes);
  }

 private:
  Runtime& runtime_;
  Stream* const stream_;
  memory::Block* block_ = nullptr;
  std::unique_ptr<std::byte[]> plain_;
};

}  // namespace ebb::detail
