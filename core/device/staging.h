#pragma once
#include <memory>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"

namespace ebb::detail {

// Memory of the host from which a device is filled: page-locked where the device has such, so that
// it copies by itself while the host goes on.
class Staging {
 public:
  // For copies in the order of `stream`.
  Staging(Runtime& runtime, Stream* stream, std::size_t bytes, const memory::Tag& tag)
      : runtime_(runtime), stream_(stream) {
    if (memory::CachingAllocator* locked = runtime.staging()) {
      try {
        block_ = locked->allocate({bytes, memory::Category::input, tag});
      } catch (const OutOfMemory&) {  // the system lends only so much: it goes without
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
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::byte* data() const noexcept {
    return block_ ? static_cast<std::byte*>(block_->data()) : plain_.get();
  }
  // Until the device has read all that it was asked to.
  void wait() const {
    if (block_) runtime_.synchronise(stream_);
  }
  // What is at `offset` stays as it is until wait() has returned.
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
