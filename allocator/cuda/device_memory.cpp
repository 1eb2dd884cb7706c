#include "ebb/allocator/cuda/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "ebb/allocator/cuda/plain_source.h"
#include "ebb/allocator/cuda/virtual_source.h"

namespace ebb::memory::cuda {
namespace {

// cudaMalloc takes this much from the device at a time.
constexpr std::size_t kPlainPageBytes = std::size_t{2} << 20;

void use_pages(Profile& profile, std::size_t page_bytes) noexcept {
  profile.page_bytes = page_bytes;
  for (std::size_t* each : {&profile.growth_step, &profile.range_bytes, &profile.small_segment,
                            &profile.medium_segment, &profile.large_multiple})
    *each = profile.in_pages(*each);
}

// Gives each block a segment of its own, whatever its size.
void use_blocks(Profile& profile) noexcept {
  profile.page_bytes = profile.small_segment = profile.medium_segment = profile.large_multiple =
      profile.rounding;
  profile.small_request = profile.medium_request = 0;
  profile.cuts = false;
}

}  // namespace

std::unique_ptr<MemorySource> make_device_source(int device, std::shared_ptr<LiveStreams> streams,
                                                 Profile& profile, std::string& problem) {
  const char* const chosen = std::getenv("EBB_CUDA_MEMORY");
  const std::string_view kind = chosen ? chosen : "";
  if (kind.empty() || kind == "virtual") {
    if (auto source = VirtualSource::make(device, streams)) {
      use_pages(profile, source->page_bytes());
      return source;
    }
    if (!kind.empty()) {
      problem = "EBB_CUDA_MEMORY=virtual, which this device or its driver does not offer";
      return nullptr;
    }
  } else if (kind != "plain" && kind != "block") {
    problem = "EBB_CUDA_MEMORY is '" + std::string(kind) + "'; there is: virtual, plain, block";
    return nullptr;
  }
  profile.grows = false;
  use_pages(profile, kPlainPageBytes);
  if (kind == "block") use_blocks(profile);
  return std::make_unique<PlainSource>(device, profile.page_bytes, std::move(streams));
}

}  // namespace ebb::memory::cuda
