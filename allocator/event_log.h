// Events of a device's memory, in order: the content of a recording.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/allocator/category.h"
#include "ebb/allocator/ledger.h"
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
  std::int64_t nanoseconds = 0;   ///< since the log was made, by a monotonic clock
  const void* address = nullptr;  ///< on the device; null for a mark, a step and zero bytes
  std::size_t bytes = 0;          ///< allocated (rounded), or of the segment
  std::uint32_t tag = 0;          ///< requester, as an index of the reading's tags; for a mark the
                                  ///< tag's operator is its name
  EventKind kind = EventKind::mark;
  Category category = Category::temporary;  ///< for allocate and free; for recategorise the new one
  Category before = Category::temporary;    ///< for recategorise: the old one
};
static_assert(sizeof(Event) == 32);

/// Bytes held at some moment of a log.
struct Held {
  ByCategory allocated{};
  std::size_t reserved = 0;
  bool operator==(const Held&) const = default;

  std::size_t allocated_bytes() const noexcept;
  void apply(const Event& event) noexcept;  ///< updates to the state after `event`
};

/// A span of events that a log no longer keeps one by one.
struct Sample {
  std::int64_t begin = 0, end = 0;  ///< nanoseconds of its first and last event
  std::size_t events = 0;
  std::size_t steps = 0;  ///< events of this kind
  // The most over the span, the moment before its first event included.
  Peak peak;  ///< of allocated bytes
  std::size_t peak_reserved = 0;
  Held after;  ///< state after its last event

  void add(const Event& event) noexcept;
  void add(const Sample& next) noexcept;
};

/// Events of a device: the last `max_events` one by one, all older ones condensed into samples. So
/// the maxima and the bytes held are exact over its whole life, and its memory is bounded. A block
/// of several categories has one event for each of them, in a row, at one address.
///
/// Everything is under the allocator's lock once the log records. A reader takes the chunks and
/// copies their content later; no event is overwritten while a reader has its chunk. Times are kept
/// in ticks, whose rate each reading measures: the same event may differ by some 100 ns in two.
class EventLog {
 public:
  /// Throws Error for a maximum of zero.
  explicit EventLog(std::size_t max_events);

  /// Sets the bytes held before the first event, and the allocator's lock. Called once, before any
  /// event is added.
  void begin(const Held& held, std::shared_ptr<Mutex> lock) noexcept;

  // Under the lock that begin() got.
  /// Condenses the oldest event when the log is full, or the host has no memory for another.
  void add(EventKind kind, const void* address, std::size_t bytes, Category category,
           const Tag& tag) noexcept {
    append({0, address, bytes, index_of(tag), kind, category, category});
  }
  /// Adds a block of several categories.
  void add(EventKind kind, const void* address, const ByCategory& split, const Tag& tag) noexcept;
  void recategorise(const void* address, std::size_t bytes, Category from, Category to,
                    const Tag& tag) noexcept {
    append({0, address, bytes, index_of(tag), EventKind::recategorise, to, from});
  }
  // Taking the lock.
  /// A name that finds no memory, or is one of more than kMostMarks different ones, is left out.
  void mark(std::string_view name) noexcept;
  void step() noexcept;

  struct Reading {
    std::vector<Sample> samples;  ///< of the dropped events, oldest first, in equal numbers but the
                                  ///< last
    std::vector<Event> marks;     ///< dropped: the first kMostMarks of them
    double began = 0;             ///< nanosecond 0, in seconds since 1970
    Held start;                   ///< state before the first event of all
    Held before;                  ///< state before the first kept event
    std::size_t dropped = 0;
    std::vector<Event> events;  ///< kept, oldest first
    std::vector<Tag> tags;      ///< valid as long as the log
  };
  Reading read() const;
  std::size_t dropped() const noexcept;

  static constexpr std::size_t kMostMarks = 1 << 16;

 private:
  static constexpr std::size_t kChunk = 1024, kSamples = 4096;
  using Chunk = std::array<Event, kChunk>;

  void append(Event event) noexcept;
  std::uint32_t& slot_of(const Tag& tag) noexcept;
  std::uint32_t index_of(const Tag& tag) noexcept;
  bool has_room() noexcept;  // condenses old events for it if need be
  bool make_room() noexcept;
  void drop_oldest() noexcept;
  void condense(const Event& event) noexcept;
  std::int64_t ticks() const noexcept;  // of the processor's counter, or nanoseconds

  const std::size_t max_events_;
  const bool counts_;                      // whether the processor's counter is as good as a clock
  const std::int64_t start_, started_at_;  // in ticks, in nanoseconds
  const double began_;                     // in seconds since 1970

  std::shared_ptr<Mutex> lock_ = std::make_shared<Mutex>();  // guards the members below
  std::deque<std::shared_ptr<Chunk>> chunks_;  // the oldest first; only the last has room
  std::size_t first_ = 0;                      // index of the oldest event in the first chunk
  std::size_t used_ = kChunk;                  // of the last chunk
  std::size_t count_ = 0;
  std::vector<Sample> samples_;  // of span_ events each
  Held start_held_;
  std::size_t span_ = 1;
  Sample open_;  // the last one; ends where the kept events begin
  std::vector<Event> marks_;
  std::size_t dropped_ = 0;
  std::int64_t last_ = 0;         // ticks of the newest event since the log was made
  std::vector<Tag> tags_{Tag{}};  // distinct, after an empty one for events without
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64);  // hash table of their
                                                                       // indices; 0: free
  std::set<std::string, std::less<>> names_;                           // of marks
};

}  // namespace ebb::memory
