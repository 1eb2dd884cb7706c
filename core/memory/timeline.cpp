#include "ebb/core/memory/timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace ebb::memory::detail {

namespace {

using Code = Timeline::Code;
using Row = Timeline::Row;

// What the page's text takes for each, about.
constexpr std::size_t kCodeBytes = 6, kPieceBytes = 40;

// Index of each different key, in the order in which they came.
template <class Key, class Value>
class Index {
 public:
  std::size_t of(const Key& key, const Value& value, std::vector<Value>& values) {
    const auto [place, is_new] = indices_.try_emplace(key, values.size());
    if (is_new) values.push_back(value);
    return place->second;
  }

 private:
  std::map<Key, std::size_t> indices_;
};

Row row_of(const Held& held) {
  Row row{};
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    row[i] = static_cast<std::int64_t>(held.allocated[i]);
  row[kCategoryCount] = static_cast<std::int64_t>(held.reserved);
  return row;
}

std::int64_t allocated(const Row& row) {
  return std::accumulate(row.begin(), row.begin() + kCategoryCount, std::int64_t{0});
}

class Packer {
 public:
  explicit Packer(const EventLog::Reading& reading) : reading_(reading) {
    timeline_.before = row_of(reading.before);
    timeline_.dropped = reading.dropped;
  }

  Timeline pack(std::size_t most_bytes) {
    for (std::size_t i = 0; i < reading_.events.size(); ++i) {
      const Event& event = reading_.events[i];
      if (event.kind == EventKind::step || event.kind == EventKind::mark)
        end_span(event);
      else
        add(event, i);
    }
    if (!codes_.empty())
      end_span({.nanoseconds = reading_.events.back().nanoseconds, .operator_name = "end"});
    thin(most_bytes);
    return std::move(timeline_);
  }

 private:
  void add(const Event& event, std::size_t i) {
    const bool maps = event.kind == EventKind::map || event.kind == EventKind::unmap;
    const auto category =
        static_cast<std::uint8_t>(maps ? kCategoryCount : static_cast<std::size_t>(event.category));
    if (event.kind == EventKind::recategorise) {
      push(event, static_cast<std::uint8_t>(event.before), Timeline::kGoes | Timeline::kJoined, 0);
      push(event, category, 0, 0);
      return;
    }
    // A block of several categories has one event for each, in a row: its parts lie side by side.
    const auto continues = [&](std::size_t next) {
      if (maps || !event.address || next >= reading_.events.size()) return false;
      const Event& other = reading_.events[next];
      return other.kind == event.kind && other.address == event.address &&
             other.category > reading_.events[next - 1].category;
    };
    const bool goes = event.kind == EventKind::free || event.kind == EventKind::unmap;
    push(event, category, (goes ? Timeline::kGoes : 0) | (continues(i + 1) ? Timeline::kJoined : 0),
         part_);
    part_ = continues(i + 1) ? part_ + event.bytes : 0;
  }

  void push(const Event& event, std::uint8_t category, Code flags, std::size_t part) {
    const Tag tag = event.tag();
    const auto which =
        tags_.of({tag.operator_name, tag.file, tag.line, tag.layer}, tag, timeline_.tags);
    const Timeline::Piece piece{reinterpret_cast<std::uintptr_t>(event.address) + part, event.bytes,
                                category, static_cast<std::uint32_t>(which)};
    codes_.push_back(
        Timeline::kPiece * static_cast<Code>(pieces_.of(piece, piece, timeline_.pieces)) + flags);
  }

  void end_span(const Event& event) {
    const auto [place, is_new] = patterns_.try_emplace(codes_, timeline_.patterns.size());
    if (is_new) timeline_.patterns.push_back(pattern_of(codes_));
    const std::string name = event.operator_name;
    timeline_.spans.push_back({place->second,
                               event.kind == EventKind::step ? -1
                                                             : static_cast<std::int64_t>(names_.of(
                                                                   name, name, timeline_.names)),
                               event.nanoseconds - since_});
    since_ = event.nanoseconds;
    codes_.clear();
  }

  Timeline::Pattern pattern_of(const std::vector<Code>& codes) const {
    Timeline::Pattern pattern{.codes = codes, .events = codes.size()};
    Row held{};
    std::int64_t most_reserved = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const Timeline::Piece& piece = piece_of(codes[i]);
      const auto bytes = static_cast<std::int64_t>(piece.bytes);
      held[piece.category] += codes[i] & Timeline::kGoes ? -bytes : bytes;
      most_reserved = std::max(most_reserved, held[kCategoryCount]);
      if (codes[i] & Timeline::kJoined || allocated(held) <= allocated(pattern.peak)) continue;
      pattern.peak = held;
      pattern.peak_events = i + 1;
    }
    pattern.peak[kCategoryCount] = most_reserved;
    return pattern;
  }

  const Timeline::Piece& piece_of(Code code) const {
    return timeline_.pieces[static_cast<std::size_t>(code / Timeline::kPiece)];
  }

  // Leaves the pieces that are there before or after the span.
  void thin(Timeline::Pattern& pattern) const {
    std::map<Code, std::vector<std::size_t>> alive;  // places of codes, by piece
    std::vector<bool> stays(pattern.codes.size(), true);
    for (std::size_t i = 0; i < pattern.codes.size(); ++i) {
      std::vector<std::size_t>& open = alive[pattern.codes[i] / Timeline::kPiece];
      if (!(pattern.codes[i] & Timeline::kGoes)) {
        open.push_back(i);
      } else if (!open.empty()) {
        stays[i] = stays[open.back()] = false;
        open.pop_back();
      }
    }
    std::vector<Code> left;
    for (std::size_t i = 0; i < stays.size(); ++i)
      if (stays[i]) left.push_back(pattern.codes[i] & ~Timeline::kJoined);
    pattern.codes = std::move(left);
    pattern.is_thinned = true;
  }

  void thin(std::size_t most_bytes) {
    std::vector<Timeline::Pattern>& patterns = timeline_.patterns;
    std::vector<std::size_t> uses(patterns.size(), 0);
    std::size_t highest = 0;
    std::int64_t most = 0;
    Row held = timeline_.before;
    for (const Timeline::Span& span : timeline_.spans) {
      ++uses[span.pattern];
      const Timeline::Pattern& pattern = patterns[span.pattern];
      if (const std::int64_t peak = allocated(held) + allocated(pattern.peak); peak > most) {
        most = peak;
        highest = span.pattern;
      }
      for (const Code code : pattern.codes) {
        const auto bytes = static_cast<std::int64_t>(piece_of(code).bytes);
        held[piece_of(code).category] += code & Timeline::kGoes ? -bytes : bytes;
      }
    }
    if (!patterns.empty())  // the peak, then the last span and the first
      for (const std::size_t p :
           {timeline_.spans.front().pattern, timeline_.spans.back().pattern, highest})
        uses[p] += reading_.events.size() * (p == highest ? 2 : 1);
    std::vector<std::size_t> order(patterns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t p) { return uses[p]; });
    std::size_t kept = 0;
    std::vector<bool> is_written(timeline_.pieces.size(), false);
    const auto cost = [&](const Timeline::Pattern& pattern) {
      std::size_t bytes = kCodeBytes * pattern.codes.size();
      std::vector<std::size_t> news;
      for (const Code code : pattern.codes) {
        const auto piece = static_cast<std::size_t>(code / Timeline::kPiece);
        if (is_written[piece]) continue;
        is_written[piece] = true;
        news.push_back(piece);
      }
      if (kept + bytes + kPieceBytes * news.size() > most_bytes)
        for (const std::size_t piece : news) is_written[piece] = false;
      return bytes + kPieceBytes * news.size();
    };
    for (const std::size_t p : order) {
      std::size_t bytes = cost(patterns[p]);
      if (kept + bytes > most_bytes) {
        thin(patterns[p]);
        bytes = cost(patterns[p]);
      }
      kept += bytes;
    }
    forget_unused_pieces();
  }

  void forget_unused_pieces() {
    std::vector<Code> number(timeline_.pieces.size(), -1);
    std::vector<Timeline::Piece> used;
    for (Timeline::Pattern& pattern : timeline_.patterns)
      for (Code& code : pattern.codes) {
        Code& n = number[static_cast<std::size_t>(code / Timeline::kPiece)];
        if (n < 0) {
          n = static_cast<Code>(used.size());
          used.push_back(piece_of(code));
        }
        code = Timeline::kPiece * n + code % Timeline::kPiece;
      }
    timeline_.pieces = std::move(used);
  }

  const EventLog::Reading& reading_;
  Timeline timeline_;
  Index<std::tuple<std::string_view, std::string_view, unsigned, std::string_view>, Tag> tags_;
  Index<std::string, std::string> names_;
  Index<Timeline::Piece, Timeline::Piece> pieces_;
  std::map<std::vector<Code>, std::size_t> patterns_;
  std::vector<Code> codes_;  // of the span that has not ended
  std::size_t part_ = 0;     // bytes of the block's parts before
  std::int64_t since_ = 0;
};

}  // namespace

Timeline pack(const EventLog::Reading& reading, std::size_t most_bytes) {
  return Packer(reading).pack(most_bytes);
}

}  // namespace ebb::memory::detail
