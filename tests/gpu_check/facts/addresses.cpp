#include <algorithm>
#include <array>
#include <vector>

#include "ebb/allocator/cuda/driver.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

using memory::cuda::Driver;

constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr std::size_t kTimed = 64;  // pages

// Times each step of a page's life.
class Pages {
 public:
  Pages(const Driver& driver, std::size_t page_bytes, std::size_t count)
      : driver_(driver), page_bytes_(page_bytes), count_(count), is_mapped_(count) {
    kind_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access_.location = kind_.location;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require(
        driver.cuMemAddressReserve(&base_, count * page_bytes, page_bytes, 0, 0) == CUDA_SUCCESS,
        "to reserve addresses for pages");
  }
  ~Pages() {
    for (std::size_t i = 0; i < count_; ++i)
      if (is_mapped_[i]) driver_.cuMemUnmap(at(i), page_bytes_);
    driver_.cuMemAddressFree(base_, count_ * page_bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Median times for the pages [begin, end).
  Json map(std::size_t begin, std::size_t end) {
    Json told;
    std::size_t i = begin;
    CUmemGenericAllocationHandle memory = 0;
    std::vector<CUmemGenericAllocationHandle> all(end - begin);
    const auto each = [&](const char* step, const auto& call) {
      i = begin;
      told[step] = microseconds(static_cast<int>(end - begin), [&] {
        require(call() == CUDA_SUCCESS, std::string("to ") + step + " a page");
        ++i;
      });
    };
    each("create", [&] {
      const CUresult result = driver_.cuMemCreate(&memory, page_bytes_, &kind_, 0);
      all[i - begin] = memory;
      return result;
    });
    each("map", [&] {
      const CUresult result = driver_.cuMemMap(at(i), page_bytes_, 0, all[i - begin], 0);
      is_mapped_[i] = result == CUDA_SUCCESS;
      return result;
    });
    each("release", [&] { return driver_.cuMemRelease(all[i - begin]); });
    each("give_access", [&] { return driver_.cuMemSetAccess(at(i), page_bytes_, &access_, 1); });
    return told;
  }
  Json unmap(std::size_t begin, std::size_t end) {
    std::size_t i = begin;
    return microseconds(static_cast<int>(end - begin), [&] {
      require(driver_.cuMemUnmap(at(i), page_bytes_) == CUDA_SUCCESS, "to unmap a page");
      is_mapped_[i++] = false;
    });
  }
  // Unmaps the first `count` pages, all mapped, in one call.
  Json unmap_at_once(std::size_t count) {
    CUresult result = CUDA_SUCCESS;
    const Json time =
        milliseconds([&] { result = driver_.cuMemUnmap(base_, count * page_bytes_); });
    if (result == CUDA_SUCCESS) std::fill_n(is_mapped_.begin(), count, false);
    return {{"pages", count}, {"granted", result == CUDA_SUCCESS}, {"milliseconds", time}};
  }

 private:
  CUdeviceptr at(std::size_t page) const noexcept { return base_ + page * page_bytes_; }

  const Driver& driver_;
  const std::size_t page_bytes_, count_;
  CUmemAllocationProp kind_ = {};
  CUmemAccessDesc access_ = {};
  CUdeviceptr base_ = 0;
  std::vector<bool> is_mapped_;
};

}  // namespace

Json addresses(Gpu& gpu) {
  constexpr std::size_t kAsked = 1024 * kGiB;
  struct Range {
    void* base = nullptr;
    std::size_t bytes = kAsked;
  };
  std::array<Range, 2> ranges;
  Json told = Json::array();
  for (Range& range : ranges) {
    const Json time = microseconds(1, [&] {
      while (!(range.base = gpu.source().reserve(range.bytes)) && range.bytes > kGiB)
        range.bytes /= 2;
    });
    told.push_back({{"asked_bytes", kAsked},
                    {"granted_bytes", range.base ? range.bytes : 0},
                    {"microseconds", time}});
  }
  for (const Range& range : ranges)
    if (range.base) gpu.source().unreserve(range.base, range.bytes);
  return told;
}

Json pages(Gpu& gpu) {
  const Driver* const driver = memory::cuda::driver();
  require(driver != nullptr && gpu.profile().grows, "virtual memory");
  const std::size_t page = gpu.source().page_bytes();
  Json told = {{"page_bytes", page}, {"unit", "microseconds, the median of 64 pages"}};
  std::size_t mapped = 0;
  Pages all(*driver, page, 10 * kGiB / page + kTimed);
  for (const std::size_t bytes : {kTimed * page, kGiB, 10 * kGiB}) {
    const std::string level = std::to_string(bytes >> 20) + "_MiB";
    const std::size_t count = bytes / page;
    if ((count - mapped) * page + kGiB / 4 > gpu.free_bytes()) {
      told[level] = "too little is free: " + std::to_string(gpu.free_bytes()) + " bytes";
      break;
    }
    if (count > mapped + kTimed) all.map(mapped, count - kTimed);
    told[level] = all.map(count - kTimed, count);
    mapped = count;
  }
  const std::size_t middle = (mapped - kTimed) / 2;
  const Json unmapped = all.unmap(middle, middle + kTimed);
  told["in_the_middle"] = all.map(middle, middle + kTimed);
  told["in_the_middle"]["unmap"] = unmapped;
  told["at_the_end"] = {{"unmap", all.unmap(mapped - kTimed, mapped)}};
  told["unmap_at_once"] = all.unmap_at_once(mapped - kTimed);
  return told;
}

}  // namespace ebb::facts
