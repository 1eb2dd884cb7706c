#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ebb/allocator/event_log.h"

namespace ebb::memory::detail {

// A recording, packed for the page. Its spans between two marks or steps mostly repeat each other
// event by event, since the allocator places equal requests alike: each different one is kept once.
struct Timeline {
  // Rows of Held: the bytes of each category, then the reserved bytes.
  static constexpr std::size_t kRow = kCategoryCount + 1;
  using Row = std::array<std::int64_t, kRow>;

  // A piece of memory that came and went as a whole: a block, a part of a block of several
  // categories, or a mapped range, whose category is kCategoryCount.
  struct Piece {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::uint8_t category = 0;
    std::uint32_t tag = 0;   // in tags; of a range 0
    std::size_t blocks = 1;  // more than one: the sum of pieces that came and never went
    auto operator<=>(const Piece&) const = default;
  };
  // Code of an event: 4 x piece, + 1 if it goes, + 2 if the next event happens at the same moment.
  using Code = std::int64_t;
  static constexpr Code kGoes = 1, kJoined = 2, kPiece = 4;

  struct Pattern {
    std::vector<Code> codes = {};
    // With `is_thinned`, the codes are only of pieces that outlive the span or were there before
    // it.
    bool is_thinned = false;
    bool is_sample = false;  // of a sample, whose events the log no longer has: no codes
    Row net{};               // bytes at the span's end, above its beginning
    Row peak{};              // most allocated bytes and their split, above the span's beginning;
                             // the last column has the most reserved bytes
    std::size_t peak_events = 0;  // codes up to that moment
    std::size_t events = 0;       // before thinning
  };
  struct Span {
    std::size_t pattern = 0;
    std::int64_t name = -1;  // in names: the mark that ended it; -1: none
    std::int64_t steps = 0;  // that ended in it; the last one with it, but for a sample
    std::int64_t nanoseconds = 0;
  };

  Row before{};
  std::vector<Tag> tags;
  std::vector<std::string> names;
  std::vector<Piece> pieces;
  std::vector<Pattern> patterns;
  std::vector<Span> spans;
};

// Packs events into about `most_bytes` of the page's text. What does not fit is thinned, first the
// spans that repeat least; the one with the peak, the last and the first go last of all. Then
// blocks that stay for good are summed by tag. Where that is not enough, or leaves less than half
// for detail, a span has several steps, but for the first. Peaks and held bytes stay exact. Tags
// and names are not counted.
Timeline pack(const EventLog::Reading& reading, std::size_t most_bytes);

}  // namespace ebb::memory::detail
