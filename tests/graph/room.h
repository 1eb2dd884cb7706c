// Limits the CPU, for a scope, to so many bytes more than it has reserved now.
#pragma once

#include "ebb/core/memory/memory.h"

namespace ebb::tests {

class Room {
 public:
  explicit Room(std::size_t bytes) {
    memory::release_cached(Device::cpu());
    memory::set_limit(Device::cpu(), memory::stats(Device::cpu()).reserved.current + bytes);
  }
  ~Room() { memory::set_limit(Device::cpu(), std::nullopt); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
};

}  // namespace ebb::tests
