// A deferred device of a test's own, whatever the others run on.
#pragma once
#include <memory>
#include <optional>

#include "ebb/core/device/runtime.h"
#include "ebb/tests/device/deferred_backend.h"

namespace ebb::tests {

struct OwnDeferred {
  explicit OwnDeferred(std::uint64_t seed = deferred_seed(), bool captures_programs = true,
                       bool has_ranges = true) {
    const auto memory = std::make_shared<DeferredMemory>(std::size_t{1} << 30);
    auto own = std::make_unique<DeferredBackend>(memory, seed);
    backend = own.get();
    Runtime::Parts parts;
    parts.name = "own";
    parts.profile.page_bytes = memory->page_bytes();
    parts.profile.captures_programs = captures_programs;
    parts.profile.grows = has_ranges;
    parts.source = std::make_unique<DeferredSource>(memory);
    parts.backend = std::move(own);
    device.emplace(Runtime::make(std::move(parts)));
  }

  DeferredBackend* backend = nullptr;
  std::optional<Device> device;
};

}  // namespace ebb::tests
