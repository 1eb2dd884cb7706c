#include "ebb/core/memory/timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

static std::int64_t allocated(const Timeline::Row& row) {
  return std::accumulate(row.begin(), row.begin() + kCategoryCount, std::int64_t{0});
}

// The peak is the higher one; the most reserved bytes may be at another moment.
void Timeline::Pattern::add(const Pattern& next) {
  Row later = next.peak;
  for (std::size_t i = 0; i < kRow; ++i) later[i] += net[i];
  const std::int64_t reserved = std::max(peak[kCategoryCount], later[kCategoryCount]);
  if (allocated(later) > allocated(peak)) {
    peak = later;
    peak_events = codes.size() + next.peak_events;
  }
  peak[kCategoryCount] = reserved;
  for (std::size_t i = 0; i < kRow; ++i) net[i] += next.net[i];
  codes.insert(codes.end(), next.codes.begin(), next.codes.end());
  events += next.events;
  is_thinned = is_thinned || next.is_thinned;
}

namespace {

using Code = Timeline::Code;
using Row = Timeline::Row;

// Bytes of the page's text for each, about.
constexpr std::size_t kCodeBytes = 6, kPieceBytes = 40, kPatternBytes = 250, kSpanBytes = 20;

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

class Packer {
 public:
  explicit Packer(const EventLog::Reading& reading) : reading_(reading), parts_(reading.tags) {
    timeline_.before = row_of(reading.start);
  }

  Timeline pack(std::size_t most_bytes) {
    add_samples();
    for (std::size_t i = 0; i < reading_.events.size(); ++i) {
      const Event& event = reading_.events[i];
      if (event.kind == EventKind::step || event.kind == EventKind::mark)
        end_span(event);
      else
        add(event, i);
    }
    if (!codes_.empty()) end_span("end", 0, reading_.events.back().nanoseconds);
    while (fixed_bytes() > most_bytes / 2 && merge(true)) {
    }
    while (thin(most_bytes) > most_bytes && merge(false)) {
    }
    forget_unused_pieces();
    return std::move(timeline_);
  }

 private:
  // Events that the log has condensed: a span for each sample, then one without events for each
  // mark in it.
  void add_samples() {
    auto mark = reading_.marks.begin();
    Row held = timeline_.before;
    for (const Sample& sample : reading_.samples) {
      const Row after = row_of(sample.after);
      const Row peak = row_of({sample.peak.by_category, sample.peak_reserved});
      Timeline::Pattern pattern;
      pattern.is_sample = true;
      pattern.events = sample.events;
      for (std::size_t i = 0; i < Timeline::kRow; ++i) {
        pattern.net[i] = after[i] - held[i];
        pattern.peak[i] = peak[i] - held[i];
      }
      held = after;
      timeline_.spans.push_back({timeline_.patterns.size(), -1,
                                 static_cast<std::int64_t>(sample.steps), sample.end - since_});
      timeline_.patterns.push_back(std::move(pattern));
      since_ = sample.end;
      for (; mark != reading_.marks.end() && mark->nanoseconds <= sample.end; ++mark)
        end_span(reading_.tags[mark->tag].operator_name, 0, sample.end);
    }
  }

  void add(const Event& event, std::size_t i) {
    if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
      const Part range{reinterpret_cast<std::uintptr_t>(event.address), event.bytes};
      push(range, kCategoryCount, event.kind == EventKind::unmap ? Timeline::kGoes : 0);
      return;
    }
    const auto [gone, come] = parts_.after(event);
    const bool continues = event.kind != EventKind::recategorise &&
                           i + 1 < reading_.events.size() &&
                           reading_.events[i + 1].kind == event.kind &&
                           reading_.events[i + 1].address == event.address;
    const Code joined = continues ? Timeline::kJoined : 0;
    if (gone)
      push(*gone, static_cast<std::size_t>(gone->category),
           Timeline::kGoes | (come ? Timeline::kJoined : joined));
    if (come) push(*come, static_cast<std::size_t>(come->category), joined);
  }

  void push(const Part& part, std::size_t category, Code flags) {
    const Tag& tag = part.tag;
    const auto which =
        tags_.of({tag.operator_name, tag.file, tag.line, tag.layer}, tag, timeline_.tags);
    const Timeline::Piece piece{part.address, part.bytes, static_cast<std::uint8_t>(category),
                                static_cast<std::uint32_t>(which)};
    codes_.push_back(
        Timeline::kPiece * static_cast<Code>(pieces_.of(piece, piece, timeline_.pieces)) + flags);
  }

  void end_span(const Event& event) {
    const bool is_step = event.kind == EventKind::step;
    end_span(is_step ? "" : reading_.tags[event.tag].operator_name, is_step, event.nanoseconds);
  }

  void end_span(const std::string& name, std::int64_t steps, std::int64_t nanoseconds) {
    const auto [place, is_new] = patterns_.try_emplace(codes_, timeline_.patterns.size());
    if (is_new) timeline_.patterns.push_back(pattern_of(codes_));
    const std::int64_t which =
        steps > 0 ? -1 : static_cast<std::int64_t>(names_.of(name, name, timeline_.names));
    timeline_.spans.push_back({place->second, which, steps, nanoseconds - since_});
    since_ = nanoseconds;
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
    pattern.net = held;
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

  // Sums pieces of a pattern that come and never go, by tag and category; ranges where they touch.
  void sum(Timeline::Pattern& pattern, const std::vector<bool>& goes) {
    std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> sums;  // places in summed
    std::vector<Timeline::Piece> summed;
    std::vector<Code> left;
    for (const Code code : pattern.codes) {
      const Timeline::Piece& piece = piece_of(code);
      if (goes[static_cast<std::size_t>(code / Timeline::kPiece)]) {
        left.push_back(code);
        continue;
      }
      const auto [place, is_new] = sums.try_emplace({piece.tag, piece.category}, summed.size());
      Timeline::Piece& into = is_new ? summed.emplace_back(piece) : summed[place->second];
      if (is_new) continue;
      if (piece.category == kCategoryCount && into.address + into.bytes != piece.address) {
        place->second = summed.size();
        summed.push_back(piece);
      } else {
        into.bytes += piece.bytes;
        into.blocks += piece.blocks;
      }
    }
    for (const Timeline::Piece& piece : summed) {
      left.push_back(Timeline::kPiece * static_cast<Code>(timeline_.pieces.size()));
      timeline_.pieces.push_back(piece);
    }
    pattern.codes = std::move(left);
  }

  std::size_t fixed_bytes() const {
    return kPatternBytes * timeline_.patterns.size() + kSpanBytes * timeline_.spans.size();
  }

  // The span with the peak of the whole recording.
  std::size_t highest() const {
    std::size_t highest = 0;
    std::int64_t most = 0;
    Row held = timeline_.before;
    for (std::size_t s = 0; s < timeline_.spans.size(); ++s) {
      const Timeline::Pattern& pattern = timeline_.patterns[timeline_.spans[s].pattern];
      if (const std::int64_t peak = allocated(held) + allocated(pattern.peak); peak > most) {
        most = peak;
        highest = s;
      }
      for (std::size_t i = 0; i < Timeline::kRow; ++i) held[i] += pattern.net[i];
    }
    return highest;
  }

  // Makes one span of every two neighbours that no mark ends; of whole ones only if asked to, and
  // never of the one with the peak, the first or the last. Returns whether there were any.
  bool merge(bool takes_whole) {
    std::vector<Timeline::Pattern> patterns;
    std::vector<Timeline::Span> spans;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers;  // of patterns or pairs
    const std::size_t none = timeline_.patterns.size(), before = timeline_.spans.size();
    const std::size_t top = highest();
    const auto can_merge = [&](std::size_t i) {
      if (i == 0 || i + 2 >= before || i == top || i + 1 == top) return false;
      if (timeline_.spans[i].name >= 0 || timeline_.spans[i + 1].name >= 0) return false;
      const Timeline::Pattern& a = timeline_.patterns[timeline_.spans[i].pattern];
      const Timeline::Pattern& b = timeline_.patterns[timeline_.spans[i + 1].pattern];
      if (a.is_sample || b.is_sample) return a.is_sample && b.is_sample;
      return takes_whole || (a.is_thinned && b.is_thinned);
    };
    for (std::size_t i = 0; i < before; ++i) {
      Timeline::Span span = timeline_.spans[i];
      std::size_t second = none;
      if (can_merge(i)) {
        const Timeline::Span& next = timeline_.spans[++i];
        second = next.pattern;
        span.steps += next.steps;
        span.nanoseconds += next.nanoseconds;
      }
      const auto [place, is_new] = numbers.try_emplace({span.pattern, second}, patterns.size());
      if (is_new) {
        patterns.push_back(timeline_.patterns[span.pattern]);
        if (second != none) patterns.back().add(timeline_.patterns[second]);
      }
      span.pattern = place->second;
      spans.push_back(span);
    }
    timeline_.patterns = std::move(patterns);
    timeline_.spans = std::move(spans);
    return timeline_.spans.size() < before;
  }

  // Returns about how many bytes are left.
  std::size_t thin(std::size_t most_bytes) {
    std::vector<Timeline::Pattern>& patterns = timeline_.patterns;
    std::vector<std::size_t> uses(patterns.size(), 0);
    for (const Timeline::Span& span : timeline_.spans) ++uses[span.pattern];
    if (!patterns.empty()) {  // the peak, then the last span and the first
      const std::size_t top = timeline_.spans[highest()].pattern;
      for (const std::size_t p :
           {timeline_.spans.front().pattern, timeline_.spans.back().pattern, top})
        uses[p] += reading_.events.size() * (p == top ? 2 : 1);
    }
    std::vector<std::size_t> order(patterns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t p) { return uses[p]; });
    std::size_t kept = fixed_bytes();
    std::vector<bool> goes(timeline_.pieces.size(), false);
    for (const Timeline::Pattern& pattern : patterns)
      for (const Code code : pattern.codes)
        if (code & Timeline::kGoes) goes[static_cast<std::size_t>(code / Timeline::kPiece)] = true;
    std::vector<bool> is_written(timeline_.pieces.size(), false);
    const auto keep = [&](const Timeline::Pattern& pattern, bool even_beyond) {
      std::set<std::size_t> news;
      for (const Code code : pattern.codes)
        if (const auto piece = static_cast<std::size_t>(code / Timeline::kPiece);
            !is_written[piece])
          news.insert(piece);
      const std::size_t bytes =
          kept + kCodeBytes * pattern.codes.size() + kPieceBytes * news.size();
      if (bytes > most_bytes && !even_beyond) return false;
      for (const std::size_t piece : news) is_written[piece] = true;
      kept = bytes;
      return true;
    };
    for (const std::size_t p : order) {
      if (keep(patterns[p], false)) continue;
      thin(patterns[p]);
      if (keep(patterns[p], false)) continue;
      sum(patterns[p], goes);
      goes.resize(timeline_.pieces.size(), false);
      is_written.resize(timeline_.pieces.size(), false);
      keep(patterns[p], true);
    }
    return kept;
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
  Parts parts_;
  std::vector<Code> codes_;  // of the span that has not ended
  std::int64_t since_ = 0;
};

}  // namespace

Timeline pack(const EventLog::Reading& reading, std::size_t most_bytes) {
  return Packer(reading).pack(most_bytes);
}

}  // namespace ebb::memory::detail
