#include "ebb/allocator/call_log.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/simulated_source.h"

namespace ebb::memory {

namespace {
// No program needs more, and sums of it do not wrap.
constexpr std::size_t kMostCapacity = std::size_t{1} << 60;

std::optional<std::size_t> limit_of(std::size_t bytes) {
  return bytes == kNoLimit ? std::nullopt : std::optional(bytes);
}
}  // namespace

/// An allocator of some capacity that gets the same calls.
class CallLog::Replay {
 public:
  Replay(const CallLog& log, std::size_t capacity_bytes)
      : log_(log),
        source_(new SimulatedSource(capacity_bytes, log.profile_.page_bytes)),
        allocator_(std::unique_ptr<MemorySource>(source_), log.profile_) {}
  ~Replay() {
    pools_.clear();  // with their blocks
    for (const auto& [key, block] : blocks_) allocator_.free(block);
  }

  // Makes the first `count` calls. False as soon as one is not served.
  bool run(std::size_t count) {
    try {
      for (std::size_t i = 0; i < count; ++i) {
        make(log_.calls_[i]);
        if (!source_->fits()) return false;
      }
    } catch (const OutOfMemory&) {  // a limit of the program's own
      return false;
    }
    return true;
  }
  std::vector<Holder> holders(std::size_t most) const { return allocator_.holders(most); }

 private:
  void make(const Call& call) {
    Pool* const pool =
        call.pool && call.kind != Kind::make_pool ? pools_.at(call.pool).get() : nullptr;
    auto& blocks = pool ? blocks_of_pools_ : blocks_;
    switch (call.kind) {
      case Kind::allocate: {
        auto [request, composition] = log_.asked_[call.request];
        request.bytes = call.bytes;
        blocks[call.block] = pool ? pool->allocate(request, std::move(composition), call.may_grow)
                                  : allocator_.allocate(request);
        break;
      }
      case Kind::free:
        pool ? pool->free(blocks.at(call.block)) : allocator_.free(blocks.at(call.block));
        blocks.erase(call.block);
        break;
      case Kind::set_limit:
        pool ? pool->set_limit(limit_of(call.bytes)) : allocator_.set_limit(limit_of(call.bytes));
        break;
      case Kind::preallocate:
        pool ? pool->preallocate(call.bytes) : allocator_.preallocate(call.bytes);
        break;
      case Kind::release_cached:
        allocator_.release_cached();
        break;
      case Kind::make_pool:
        pools_[call.pool] = allocator_.make_pool("replay", limit_of(call.bytes));
        break;
      case Kind::grow: {
        const Asked& asked = log_.asked_[call.request];
        provide(*pool, blocks.at(call.block), asked.request, asked.composition);
        break;
      }
      case Kind::rest:
        pool->rest(blocks.at(call.block));
        break;
      case Kind::wake: {
        // Here the memory may have been taken: its owner then asks for as much as it needs.
        Block*& block = blocks.at(call.block);
        const Request request{call.bytes, block->category(), block->tag()};
        if (block->requested_bytes() >= call.bytes && pool->wake(block, call.bytes)) break;
        Composition composition;
        composition.split[static_cast<std::size_t>(request.category)] =
            log_.profile_.rounded(request.bytes);
        provide(*pool, block, request, composition);
        break;
      }
      case Kind::suspend:
        pool->suspend();
        break;
      case Kind::resume:
        pool->resume();
        break;
      case Kind::close:
        pool->close();
        break;
      case Kind::destroy_pool:
        pools_.erase(call.pool);
        break;
    }
  }

  static void provide(Pool& pool, Block*& block, const Request& request,
                      const Composition& composition) {
    if (pool.grow(block, request, composition)) return;
    pool.free(std::exchange(block, nullptr));
    block = pool.allocate(request, composition, true);
  }

  const CallLog& log_;
  SimulatedSource* const source_;
  CachingAllocator allocator_;
  std::unordered_map<const void*, std::unique_ptr<Pool>> pools_;
  std::unordered_map<const void*, Block*> blocks_, blocks_of_pools_;  // by the block of the log
};

void CallLog::add(Kind kind, const void* pool, const void* block, std::size_t bytes) noexcept {
  const Guard guard(mutex_);
  try {
    calls_.push_back({pool, block, bytes, 0, kind, false});
  } catch (...) {
    is_torn_ = true;
  }
}

void CallLog::add(Kind kind, const void* pool, const Block* block, const Request& request,
                  std::size_t allocated, const Composition* composition, bool may_grow) noexcept {
  const Guard guard(mutex_);
  try {
    calls_.push_back({pool, block, request.bytes, known(request, composition), kind, may_grow});
  } catch (...) {
    is_torn_ = true;
  }
  if (allocated <= peak_bytes_) return;
  peak_bytes_ = allocated;
  peak_calls_ = calls_.size();
  peak_request_ = request;
}

std::uint32_t CallLog::known(const Request& request, const Composition* composition) {
  const auto next = static_cast<std::uint32_t>(asked_.size());
  if (composition) {
    asked_.push_back({request, *composition});
    return next;
  }
  const Tag& tag = request.tag;
  const auto [at, is_new] =
      tags_.try_emplace({tag.operator_name, tag.file, tag.line, tag.layer}, next);
  if (is_new) asked_.push_back({request, {}});
  return at->second;
}

bool CallLog::is_served_by(std::size_t capacity_bytes) const {
  if (is_torn_) throw std::bad_alloc();
  return Replay(*this, capacity_bytes).run(calls_.size());
}

std::vector<Holder> CallLog::peak_holders(std::size_t most) const {
  Replay replay(*this, kMostCapacity);
  replay.run(peak_calls_);
  return replay.holders(most);
}

// Most programs need hardly more than their peak, so the search begins there. It finds the border
// next to the peak where a block in the way makes larger limits fail again.
std::size_t CallLog::least_limit_bytes() const {
  const std::size_t page = profile_.page_bytes;
  std::size_t served = profile_.in_pages(peak_bytes_), refused = served;
  if (is_served_by(served)) {
    // Resting memory gives way, so less may do.
    for (std::size_t step = page; served > 0; step *= 2) {
      refused = served - std::min(served, step);
      if (!is_served_by(refused)) break;
      served = refused;
    }
  } else {
    for (std::size_t step = page; !is_served_by(served += step) && served < kMostCapacity;
         step *= 2)
      refused = served;
  }
  while (served - refused > page) {
    const std::size_t middle = refused + profile_.whole_pages((served - refused) / 2);
    (is_served_by(middle) ? served : refused) = middle;
  }
  return served;
}

}  // namespace ebb::memory
