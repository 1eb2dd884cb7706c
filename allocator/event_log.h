// What happened to a device's memory, in order: what a recording is made of.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/category.h"
#include "ebb/allocator/mutex.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

enum class EventKind : std::uint8_t {
  allocate,      ///< a block came, in the cache or in a pool
  free,          ///< a block went
  recategorise,  ///< its bytes are of another category from now on
  map,           ///< bytes came from the device: a segment, or pages of one
  unmap,         ///< they went back
  mark,          ///< the program named this moment
  step,          ///< a training step ended
};

inline constexpr std::size_t kEventKindCount = 7;

constexpr const char* name(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::allocate:
      return "allocate";
    case EventKind::free:
      return "free";
    case EventKind::recategorise:
      return "recategorise";
    case EventKind::map:
      return "map";
    case EventKind::unmap:
      return "unmap";
    case EventKind::mark:
      return "mark";
    case EventKind::step:
      return "step";
  }
  return "unknown";
}

struct Event {
  std::int64_t nanoseconds = 0;    ///< since the log was made, by a clock that never goes back
  const void* address = nullptr;   ///< on the device; null for a mark, a step and zero bytes
  std::size_t bytes = 0;           ///< allocated ones (rounded), or of the segment
  const char* operator_name = "";  ///< who asked; of a mark its name, which a log keeps for as long
                                   ///< as it lives once it was read
  const char* file = "";
  std::uint32_t line = 0;
  EventKind kind = EventKind::mark;
  Category category = Category::temporary;  ///< of allocate and free; of recategorise the new one
  Category before = Category::temporary;    ///< of recategorise: the old one

  Tag tag() const noexcept { return {operator_name, file, line}; }
};
static_assert(sizeof(Event) <= 48);

/// What is held at some moment of a log.
struct Held {
  ByCategory allocated{};
  std::size_t reserved = 0;
  bool operator==(const Held&) const = default;

  std::size_t allocated_bytes() const noexcept;
  void apply(const Event& event) noexcept;  ///< what is held after it
};

/// The last events of a device, at most so many. A block whose bytes are of several categories has
/// an event for each of them, one after the other, at one address.
///
/// Events are added in one order, under the allocator's lock. The log has a lock of its own beside,
/// so that marks and readers need not hold up allocations: a reader takes the chunks, which are
/// never written twice while it has them, and copies what is in them afterwards.
class EventLog {
 public:
  /// Throws Error for less than one event.
  explicit EventLog(std::size_t max_events);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// What is held before the first event. Called once, before any is added.
  void begin(const Held& held) noexcept;

  /// The oldest event goes where there are too many; where the host has no memory for this one, it
  /// is counted as dropped itself.
  void add(EventKind kind, const void* address, std::size_t bytes, Category category,
           const Tag& tag) noexcept {
    append(kind, address, bytes, category, category, tag);
  }
  /// The same for a block of several categories.
  void add(EventKind kind, const void* address, const ByCategory& split, const Tag& tag) noexcept;
  void recategorise(const void* address, std::size_t bytes, Category from, Category to,
                    const Tag& tag) noexcept {
    append(EventKind::recategorise, address, bytes, to, from, tag);
  }
  /// Throws std::bad_alloc.
  void mark(std::string_view name);
  void step() noexcept;

  struct Reading {
    Held before;  ///< the first event
    std::size_t dropped = 0;
    std::vector<Event> events;  ///< the oldest first
  };
  Reading read() const;
  std::size_t dropped() const noexcept;

 private:
  static constexpr std::size_t kChunk = 1024;
  using Names = std::set<std::string, std::less<>>;
  struct Chunk {
    std::array<Event, kChunk> events;
    std::list<Names> names;  // of its marks: none, or one set. They go with it, unless it was read
    bool was_read = false;
  };

  void append(EventKind kind, const void* address, std::size_t bytes, Category category,
              Category before, const Tag& tag) noexcept;
  // Under the lock.
  void append(const Event& event) noexcept;
  bool has_room() noexcept;  // makes it
  bool make_room() noexcept;
  void drop_oldest() noexcept;
  std::int64_t now() const noexcept;

  const std::size_t max_events_;
  const std::chrono::steady_clock::time_point start_;

  mutable Mutex mutex_;                        // guards what follows
  std::deque<std::shared_ptr<Chunk>> chunks_;  // the oldest first; only the last has room
  std::size_t first_ = 0;                      // event, in the first chunk
  std::size_t used_ = kChunk;                  // of the last chunk
  std::size_t count_ = 0;
  Held before_;  // the first event
  std::size_t dropped_ = 0;
  std::list<Names> names_;  // of marks that are gone, and were read
};

}  // namespace ebb::memory
