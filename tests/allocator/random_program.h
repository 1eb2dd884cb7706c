// A random program on an allocator and its pools, compared with a plain model after every call. Its
// source may refuse at random.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/fault_source.h"
#include "ebb/tests/heap.h"

namespace ebb::tests {

struct ProgramOptions {
  bool injects = false;  // the source refuses and keeps at random, and the host's heap fails
  bool writes = false;   // patterns into live blocks, which have to stay
};

/// Checks by `if (wrong) FAIL`, since a million assertions would take longer than the allocations.
class RandomProgram {
 public:
  RandomProgram(std::unique_ptr<memory::MemorySource> upstream, memory::Profile profile,
                std::uint64_t seed, ProgramOptions options = {})
      : RandomProgram(std::make_unique<FaultInjectingSource>(std::move(upstream)),
                      std::move(profile), seed, options) {}
  ~RandomProgram() {
    if (!finished_) abandon();
  }

  FaultInjectingSource& source() { return *source_; }
  memory::CachingAllocator& allocator() { return allocator_; }
  std::size_t refused() const { return refused_; }
  std::size_t refused_by_device() const { return refused_by_device_; }
  std::size_t taken() const { return taken_; }

  void step();

  /// Frees, closes and releases everything. Checks that the source has all of it back.
  void finish();

 private:
  using ByCategory = memory::ByCategory;
  enum class Presence { held, resting, away, suspended };
  struct Live {
    Block* block;
    unsigned char pattern;
    std::uint64_t age = 0;
    ByCategory split{};
    Presence presence = Presence::held;
    bool may_grow = false;
    bool has_memory() const { return presence == Presence::held || presence == Presence::resting; }
  };
  struct Owned {
    std::unique_ptr<memory::Pool> pool;
    std::vector<Live> live;
    std::size_t limit = memory::kNoLimit;
    bool suspended = false, exact = true;  // exact: only its blocks' pages are reserved
    bool reserves_ahead = false;           // if so, others leave its resting blocks alone
  };
  static constexpr std::size_t kMostLive = 60, kMostPools = 4, kMostPooled = 8;

  RandomProgram(std::unique_ptr<FaultInjectingSource> source, memory::Profile profile,
                std::uint64_t seed, ProgramOptions options)
      : source_(source.get()),
        options_(options),
        random_(seed),
        allocator_(std::move(source), std::move(profile)) {
    live_.reserve(kMostLive + 1);
    pools_.reserve(kMostPools + 1);
  }

  std::size_t reserved() const { return allocator_.reserved_bytes(); }
  std::size_t pages(const Live& live) const {
    return allocator_.profile().in_pages(live.block->allocated_bytes());
  }

  void inject();

  // Makes a call that may throw, sometimes with a failing heap. Returns whether it succeeded.
  template <class Call>
  bool try_to(const Call& call) {
    presses_ = true;
    try {
      if (options_.injects && random_.one_in(30)) HeapFault::arm();
      call();
      HeapFault::disarm();
      return true;
    } catch (const OutOfMemory& error) {
      ++refused_;
      reason_ = error.reason();
      if (reason_ == OutOfMemory::Reason::device_refused) ++refused_by_device_;
    } catch (const std::bad_alloc&) {
      reason_.reset();
    }
    HeapFault::disarm();
    return false;
  }

  void act();

  // Calls on the cache.
  void allocate();
  void free_one();
  void recategorise();
  void release();
  void change_limit();
  void preallocate();

  // Calls on pools.
  void make_or_close();
  void close(Owned& owned);
  void suspend_or_resume(Owned& owned);
  void change_limit(Owned& owned);
  void preallocate(Owned& owned);
  void allocate(Owned& owned);
  void grow(Owned& owned, Live& live);

  void rest(Owned& owned, Live& live) {
    what_ = "rest";
    owned.pool->rest(live.block);
    live.presence = Presence::resting;
  }

  void wake(Owned& owned, Live& live);

  void wake_with_memory(Owned& owned, Live& live) {
    if (!owned.pool->wake(live.block))
      owned.pool->grow(live.block, {.bytes = live.block->requested_bytes()}, {live.split, {}});
  }

  void note_woken(Owned& owned, Live& live);
  void free_one(Owned& owned, Live& live);

  // Calls on the whole allocator.
  void check();
  static std::vector<Live*> in_order(Owned& owned);
  void clear();
  void abandon();
  ByCategory split_of(std::size_t bytes);

  unsigned char pattern() { return static_cast<unsigned char>(random_.below(256)); }
  void fill(const Live& live) {
    if (options_.writes && live.block->requested_bytes() > 0)
      std::memset(live.block->data(), live.pattern, live.block->requested_bytes());
  }
  void verify(const Live& live) const;
  void fail(const std::string& problem) const { FAIL("after '" << what_ << "': " << problem); }

  FaultInjectingSource* source_;
  const ProgramOptions options_;
  Random random_;
  memory::CachingAllocator allocator_;
  std::vector<Live> live_;
  std::vector<Owned> pools_;  // in the order of making
  std::size_t limit_ = memory::kNoLimit, preallocated_ = 0;
  std::size_t lost_ = 0;  // bytes of closed pools that the device never took back
  std::uint64_t next_age_ = 0;
  std::size_t before_ = 0;  // reserved
  bool refuses_ = false, keeps_ = false, has_no_addresses_ = false;
  bool presses_ = false;
  const memory::Pool* presser_ = nullptr;
  const Block* woken_ = nullptr;  // for a while
  std::optional<OutOfMemory::Reason> reason_;
  std::size_t refused_ = 0, refused_by_device_ = 0, taken_ = 0;
  const char* what_ = "";
  bool finished_ = false;
};

}  // namespace ebb::tests
