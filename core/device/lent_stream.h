#pragma once
#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

// A stream lent to one owner, such as a session, for the life of this object.
class LentStream : NoCopy {
 public:
  explicit LentStream(Runtime& runtime) : runtime_(runtime), stream_(runtime.lend_stream()) {}
  ~LentStream() { runtime_.take_back(stream_); }

  Stream* get() const noexcept { return stream_; }

 private:
  Runtime& runtime_;
  Stream* const stream_;
};

}  // namespace ebb
