#include "ebb/allocator/detail/shared.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <tuple>

#include "ebb/allocator/out_of_memory_observer.h"

namespace ebb::memory::detail {

Shared::Shared(std::unique_ptr<MemorySource> memory_source, Profile device_profile)
    : source(std::move(memory_source)), profile(std::move(device_profile)) {
  profile.check();
  if (profile.page_bytes % source->page_bytes() != 0) {
    throw Error("profile " + profile.name + ": page_bytes is " +
                std::to_string(profile.page_bytes) + ", no multiple of the source's " +
                std::to_string(source->page_bytes()));
  }
}

void* Shared::map(std::size_t bytes, OutOfMemory::Reason& why) noexcept {
  if (bytes > limit || ledger.reserved() > limit - bytes) {
    if (ledger.reserved() > 0) trim(bytes > limit ? kNoLimit : ledger.reserved() - (limit - bytes));
    if (bytes > limit || ledger.reserved() > limit - bytes) {
      why = OutOfMemory::Reason::device_limit;
      return nullptr;
    }
  }
  void* base = source->map(bytes);
  if (!base && trim().returned_bytes > 0) base = source->map(bytes);
  if (!base) {
    why = OutOfMemory::Reason::device_refused;
    return nullptr;
  }
  ledger.reserve(bytes);
  record(EventKind::map, base, bytes);
  return base;
}

void Shared::unmap(void* base, std::size_t bytes) noexcept {
  source->unmap(base, bytes);
  ledger.give_back(bytes);
  record(EventKind::unmap, base, bytes);
}

bool Shared::grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept {
  const std::size_t more = new_bytes - bytes;
  if (more > limit || ledger.reserved() > limit - more) return false;
  if (!source->grow(base, bytes, new_bytes)) return false;
  ledger.reserve(more);
  record(EventKind::map, static_cast<std::byte*>(base) + bytes, more);
  return true;
}

ReleaseReport Shared::trim(std::size_t bytes) noexcept {
  ReleaseReport report;
  Segments& segments = heap.segments();
  for (auto at = segments.begin(); at != segments.end() && report.returned_bytes < bytes;) {
    const Segment segment = at->second;
    if (!segment.is_free()) {
      ++at;
      continue;
    }
    at = heap.drop(at);
    unmap(segment.base, segment.bytes);
    report.returned_bytes += segment.bytes;
    ++report.returned_segments;
  }
  return report;
}

bool Shared::fails_now() noexcept {
  if (!fail_after) return false;
  if ((*fail_after)-- > 0) return false;
  fail_after.reset();
  return true;
}

std::vector<Holder> Shared::holders(std::size_t most) const {
  std::map<std::tuple<std::string_view, std::string_view, unsigned>, Holder> by_tag;
  const auto count = [&](const BlockNode& node) {
    const Tag& tag = node.tag();
    Holder& holder = by_tag[{tag.operator_name, tag.file, tag.line}];
    holder.tag = tag;
    holder.bytes += node.bytes();
    ++holder.blocks;
  };
  for (const auto& [age, segment] : heap.segments()) {
    for (const BlockNode* node = segment.first; node; node = node->after) {
      if (!node->is_free) count(*node);
    }
  }
  for (const PoolState* pool : pools) {
    for (const auto& [age, holding] : pool->holdings) count(holding.node);
  }
  std::vector<Holder> holders;
  holders.reserve(by_tag.size());
  for (const auto& [tag, holder] : by_tag) holders.push_back(holder);
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  if (holders.size() > most) holders.resize(most);
  return holders;
}

OutOfMemory::Facts Shared::explain(const Request& request, OutOfMemory::Reason why,
                                   std::size_t segment_bytes, PoolState* pool) {
  constexpr std::size_t kHolders = 5;
  OutOfMemory::Facts facts;
  facts.reason = why;
  facts.request = request;
  facts.segment_bytes = segment_bytes;
  facts.device = profile.name;
  facts.stats = with_device(ledger.stats(), limit);
  facts.holders = holders(kHolders);
  if (pool) {
    facts.pool = pool->name;
    facts.pool_stats = with_device(pool->ledger.stats(), pool->limit);
  }
  return facts;
}

void Shared::tell(const OutOfMemory& refused) noexcept {
  if (!observes_out_of_memory()) return;
  try {
    OutOfMemoryReport report{refused.facts(), {}, nullptr};
    {
      const BiasedLock::Guard guard(lock);
      report.holders = holders(kNoLimit);
      report.recorder = recorder;
    }
    observe_out_of_memory(report);
  } catch (const std::bad_alloc&) {  // what is thrown then is the OutOfMemory
  }
}

Stats Shared::with_device(Stats stats, std::size_t its_limit) const noexcept {
  const DeviceMemory memory = source->device_memory();
  stats.device_free = memory.free;
  stats.device_total = memory.total;
  stats.limit = its_limit;
  return stats;
}

}  // namespace ebb::memory::detail
