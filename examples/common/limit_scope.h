#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>

#include "ebb/core/memory/memory.h"

namespace examples {

// Bounds what a device may reserve above what it holds, for a scope.
class LimitScope {
 public:
  LimitScope(const ebb::Device& device, std::optional<std::size_t> bytes) : device_(device) {
    if (!bytes) return;
    const ebb::memory::Stats stats = ebb::memory::stats(device);
    before_ = stats.limit;
    ebb::memory::set_limit(device, std::min(stats.reserved.current + *bytes, stats.limit));
  }
  ~LimitScope() {
    if (!before_) return;
    ebb::memory::set_limit(device_, *before_ == ebb::memory::kNoLimit ? std::nullopt : before_);
  }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  const ebb::Device device_;
  std::optional<std::size_t> before_;  // nothing: this scope bounds nothing
};

}  // namespace examples
