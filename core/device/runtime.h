#pragma once
#include <cstring>
#include <memory>
#include <string>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/profile.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/device/device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

#ifndef EBB_POISON
#define EBB_POISON 0
#endif

namespace detail {
// Every byte 0xFF: NaN in any floating type, an absurd index or count in any other.
inline void poison(void* memory, std::size_t bytes) noexcept {
  if (bytes) std::memset(memory, 0xFF, bytes);
}
}  // namespace detail

// What stands behind a Device: its allocator, and which kernels and memory rules serve it. The
// CPU's lives as long as the process, a simulated one as long as its handles and tensors.
class Runtime final : public detail::Counted {
 public:
  static Device make_simulated(const memory::Profile& profile, std::size_t capacity_bytes);

  const std::string& name() const noexcept { return name_; }
  const memory::Profile& profile() const noexcept { return profile_; }
  bool is_simulated() const noexcept { return simulated_; }
  memory::CachingAllocator& allocator() noexcept { return *allocator_; }
  // Bytes of memory a simulated device stands for; the machine's own on a real one.
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  // Whether what was asked of a simulated device stayed within its capacity; true on a real one.
  bool fits() const noexcept;
  // Whether memory is filled with NaNs when it is handed out and when its life ends, so that
  // whoever reads it too early or too late shows. Initially the build's EBB_POISON; results never
  // change.
  bool poisons() const noexcept { return poisons_ && !simulated_; }
  void set_poisons(bool poisons) noexcept { poisons_ = poisons; }

 private:
  friend class Device;
  Runtime(std::string name, memory::Profile profile, bool simulated,
          std::unique_ptr<memory::MemorySource> source, std::size_t capacity_bytes);

  const std::string name_;
  const memory::Profile profile_;
  const bool simulated_;
  const std::size_t capacity_bytes_;
  bool poisons_ = EBB_POISON;
  const memory::MemorySource* source_;
  std::unique_ptr<memory::CachingAllocator> allocator_;
};

}  // namespace ebb
