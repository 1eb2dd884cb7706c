// Events of a device's memory, in order: the content of a recording.
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
  recategorise,  ///< its bytes changed category
  map,           ///< bytes came from the device: a segment, or pages of one
  unmap,         ///< they went back
  mark,          ///< the program named this moment
  step,          ///< a training step ended
};

inline constexpr std::size_t kEventKindCount = 7;

constexpr const char* name(EventKind kind) noexcept {
  constexpr const char* names[kEventKindCount] = {"allocate", "free", "recategorise", "map",
                                                  "unmap",    "mark", "step"};
  return names[static_cast<std::size_t>(kind)];
}

struct Event {
  std::int64_t nanoseconds = 0;    ///< since the log was made, by a monotonic clock
  const void* address = nullptr;   ///< on the device; null for a mark, a step and zero bytes
  std::size_t bytes = 0;           ///< allocated (rounded), or of the segment
  const char* operator_name = "";  ///< the requester; for a mark its name, valid while the log
                                   ///< lives once it has been read
  const char* file = "";
  std::uint32_t line = 0;
  EventKind kind = EventKind::mark;
  Category category = Category::temporary;  ///< for allocate and free; for recategorise the new one
  Category before = Category::temporary;    ///< for recategorise: the old one

  Tag tag() const noexcept { return {operator_name, file, line}; }
};
static_assert(sizeof(Event) <= 48);

/// Bytes held at some moment of a log.
struct Held {
  ByCategory allocated{};
  std::size_t reserved = 0;
  bool operator==(const Held&) const = default;

  std::size_t allocated_bytes() const noexcept;
  void apply(const Event& event) noexcept;  ///< updates to the state after `event`
};

/// The last `max_events` events of a device. A block of several categories has one event for each
/// of them, in a row, at one address.
///
/// Events are added in one order, under the allocator's lock. The log has a lock of its own as
/// well, so that marks and readers do not hold up allocations. A reader takes the chunks and copies
/// their content later; no event is overwritten while a reader has its chunk.
class EventLog {
 public:
  /// Throws Error for a maximum of zero.
  explicit EventLog(std::size_t max_events);

  /// Sets the bytes held before the first event. Called once, before any event is added.
  void begin(const Held& held) noexcept;

  /// Drops the oldest event when the log is full. If the host has no memory for the new event,
  /// counts it as dropped.
  void add(EventKind kind, const void* address, std::size_t bytes, Category category,
           const Tag& tag) noexcept {
    append(kind, address, bytes, category, category, tag);
  }
  /// Adds a block of several categories.
  void add(EventKind kind, const void* address, const ByCategory& split, const Tag& tag) noexcept;
  void recategorise(const void* address, std::size_t bytes, Category from, Category to,
                    const Tag& tag) noexcept {
    append(EventKind::recategorise, address, bytes, to, from, tag);
  }
  void mark(std::string_view name) noexcept;
  void step() noexcept;

  struct Reading {
    Held before;  ///< state before the first event
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
    std::list<Names> names;  // of its marks: none, or one set; dropped with the chunk unless it was
                             // read
    bool was_read = false;
  };

  void append(EventKind kind, const void* address, std::size_t bytes, Category category,
              Category before, const Tag& tag) noexcept;
  // Under the lock.
  void append(const Event& event) noexcept;
  bool has_room() noexcept;  // drops old events for it if need be
  bool make_room() noexcept;
  void drop_oldest() noexcept;
  std::int64_t now() const noexcept;

  const std::size_t max_events_;
  const std::chrono::steady_clock::time_point start_;

  mutable Mutex mutex_;                        // guards the members below
  std::deque<std::shared_ptr<Chunk>> chunks_;  // the oldest first; only the last has room
  std::size_t first_ = 0;                      // index of the oldest event in the first chunk
  std::size_t used_ = kChunk;                  // of the last chunk
  std::size_t count_ = 0;
  Held before_;  // state before the oldest kept event
  std::size_t dropped_ = 0;
  std::list<Names> names_;  // of dropped marks that were read
};

}  // namespace ebb::memory
