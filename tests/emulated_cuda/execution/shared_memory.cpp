#include "ebb/tests/emulated_cuda/execution/shared_memory.h"

#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "ebb/tests/emulated_cuda/execution/sanitizers.h"

namespace ebb::emulated {
namespace {

// A kernel's first launches are observed, then one in 64: the arrays that it uses may depend on its
// arguments.
constexpr std::size_t kLooksEach = 64;
constexpr std::size_t kGrain = 1024;
constexpr int kGarbage = 0xFF;  // NaN, -1

// Touched so that the loader allocates this thread's thread-local storage.
thread_local volatile char anchor = 0;

}  // namespace

void SharedMemory::find() {
  anchor = 1;
  struct Found {
    const void* code;
    void* base = nullptr;
    std::size_t bytes = 0;
  } found{reinterpret_cast<const void*>(&kGrain)};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& found = *static_cast<Found*>(data);
        const auto address = reinterpret_cast<std::uintptr_t>(found.code);
        bool own = false;
        std::size_t bytes = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD && address >= begin && address < begin + header.p_memsz)
            own = true;
          if (header.p_type == PT_TLS) bytes = header.p_memsz;
        }
        if (!own) return 0;
        found.base = info->dlpi_tls_data;
        found.bytes = bytes;
        return 1;
      },
      &found);
  base_ = static_cast<std::byte*>(found.base);
  bytes_ = base_ ? found.bytes : 0;
  if (!base_) return;
  std::memset(base_, kGarbage, bytes_);
  sanitizers::announce(base_, (bytes_ + 7) & ~std::size_t{7});
}

// Between launches all shared memory is garbage, except for parts that a kernel changed in a launch
// that was not observed.
void SharedMemory::begin_launch(const void* kernel) {
  if (!base_) find();
  if (use_) begin_block();  // clears the previous launch's parts, which others may use too
  use_ = &uses_[kernel];
  const std::size_t launch = use_->launches++;
  looks_ = std::has_single_bit(launch + 1) || launch % kLooksEach == 0;
}

void SharedMemory::begin_block() {
  sanitizers::forget(base_, bytes_ & ~std::size_t{7});  // another block's memory
  for (const auto& [begin, end] : use_->parts) std::memset(base_ + begin, kGarbage, end - begin);
}

void SharedMemory::end_block() {
  if (!looks_) return;
  looks_ = false;
  sanitizers::forget(base_, bytes_ & ~std::size_t{7});
  use_->parts.clear();
  for (std::size_t begin = 0; begin < bytes_; begin += kGrain) {
    const std::size_t end = std::min(begin + kGrain, bytes_);
    const std::byte* const grain = base_ + begin;
    if (grain[0] == std::byte{kGarbage} && std::memcmp(grain, grain + 1, end - begin - 1) == 0)
      continue;
    if (!use_->parts.empty() && use_->parts.back().second == begin)
      use_->parts.back().second = end;
    else
      use_->parts.emplace_back(begin, end);
  }
}

}  // namespace ebb::emulated
