#include "ebb/core/memory/timeline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

namespace {

using Code = Timeline::Code;
using Row = Timeline::Row;

// Bytes of the page's text for each, about.
constexpr std::size_t kCodeBytes = 6, kPieceBytes = 40, kPatternBytes = 250, kSpanBytes = 20;

std::int64_t allocated(const Row& row) {
  return std::accumulate(row.begin(), row.begin() + kCategoryCount, std::int64_t{0});
}

Row row_of(const Held& held) {
  Row row{};
  std::ranges::copy(held.allocated, row.begin());
  row.back() = static_cast<std::int64_t>(held.reserved);
  return row;
}

Row operator-(Row row, const Row& other) {
  std::ranges::transform(row, other, row.begin(), std::minus());
  return row;
}

// Packs with at most so many steps, or samples, in a span.
class Packer {
 public:
  Packer(const EventLog::Reading& reading, std::size_t most_steps)
      : reading_(reading), most_steps_(most_steps) {
    timeline_.before = row_of(reading.start);
    timeline_.tags = reading.tags;
    add_samples();
    add_events();
    bytes_ = kPatternBytes * timeline_.patterns.size() + kSpanBytes * spans();
  }

  std::size_t spans() const noexcept { return timeline_.spans.size(); }
  // Returns the bytes of the page; before thin() those without detail.
  std::size_t bytes() const noexcept { return bytes_; }

  // Thins what does not fit: whole patterns leave room for thinned ones, and these for sums.
  // Returns the bytes of the page.
  std::size_t thin(std::size_t most_bytes) {
    for (const std::size_t p : by_importance()) {
      Timeline::Pattern& pattern = timeline_.patterns[p];
      if (write(pattern, most_bytes / 4 * 3)) continue;
      thin(pattern, false);
      if (write(pattern, most_bytes / 8 * 7)) continue;
      thin(pattern, true);
      write(pattern, std::numeric_limits<std::size_t>::max());
    }
    return bytes_;
  }

  Timeline timeline() { return std::move(timeline_); }

 private:
  struct Known {
    Timeline::Piece piece;
    bool goes = false;  // in any span
    Code number = -1;   // on the page; -1: not there
  };

  // Events that the log has condensed: spans of samples, and after each one without events for each
  // mark in it.
  void add_samples() {
    auto mark = reading_.marks.begin();
    Row held = timeline_.before;
    for (auto next = reading_.samples.begin(); next != reading_.samples.end();) {
      Sample sample = *next++;
      for (std::size_t i = 1; i < most_steps_ && next != reading_.samples.end(); ++i)
        sample.add(*next++);
      const Row after = row_of(sample.after);
      const Row peak = row_of({sample.peak.by_category, sample.peak_reserved});
      timeline_.patterns.push_back(
          {.is_sample = true, .net = after - held, .peak = peak - held, .events = sample.events});
      end_span(timeline_.patterns.size() - 1, -1, sample.steps, sample.end);
      held = after;
      for (; mark != reading_.marks.end() && mark->nanoseconds <= sample.end; ++mark)
        end_span(reading_.tags[mark->tag].operator_name, sample.end);
    }
  }

  // The first step has a span of its own.
  void add_events() {
    const auto end = reading_.events.end();
    std::size_t steps = 0, most = 1;
    for (auto event = reading_.events.begin(); event != end; ++event) {
      if (event->kind == EventKind::mark) {
        end_span(reading_.tags[event->tag].operator_name, event->nanoseconds);
      } else if (event->kind == EventKind::step) {
        const auto next = std::find_if(event + 1, end, [](const Event& each) {
          return each.kind == EventKind::step || each.kind == EventKind::mark;
        });
        const bool is_last = next == end || next->kind == EventKind::mark;
        if (++steps < most && !is_last) continue;
        end_span(pattern(), -1, steps, event->nanoseconds);
        steps = 0;
        most = most_steps_;
      } else {
        add(*event);
      }
    }
    if (!codes_.empty()) end_span("end", reading_.events.back().nanoseconds);
  }

  void add(const Event& event) {
    if (event.kind == EventKind::map || event.kind == EventKind::unmap) {
      const auto address = reinterpret_cast<std::uintptr_t>(event.address);
      return push({address, event.bytes, kCategoryCount},
                  event.kind == EventKind::unmap ? Timeline::kGoes : 0);
    }
    const auto [gone, come, continues] = parts_.after(event);
    const auto piece = [](const Part& part) -> Timeline::Piece {
      return {part.address, part.bytes, static_cast<std::uint8_t>(part.category), part.tag};
    };
    if (continues) codes_.back() |= Timeline::kJoined;
    if (gone) push(piece(*gone), Timeline::kGoes | (come ? Timeline::kJoined : 0));
    if (come) push(piece(*come), 0);
  }

  void push(const Timeline::Piece& piece, Code flags) {
    const auto [place, is_new] = indices_.try_emplace(piece, static_cast<Code>(pieces_.size()));
    if (is_new) pieces_.push_back({piece});
    codes_.push_back(Timeline::kPiece * place->second + flags);
    if (flags & Timeline::kGoes) known(codes_.back()).goes = true;
  }

  Known& known(Code code) { return pieces_[static_cast<std::size_t>(code / Timeline::kPiece)]; }

  void end_span(const std::string& name, std::int64_t nanoseconds) {
    const auto [place, is_new] = names_.try_emplace(name, timeline_.names.size());
    if (is_new) timeline_.names.push_back(name);
    end_span(pattern(), static_cast<std::int64_t>(place->second), 0, nanoseconds);
  }

  void end_span(std::size_t pattern, std::int64_t name, std::size_t steps,
                std::int64_t nanoseconds) {
    timeline_.spans.push_back(
        {pattern, name, static_cast<std::int64_t>(steps), nanoseconds - since_});
    since_ = nanoseconds;
    codes_.clear();
  }

  // The pattern of the events since the last span.
  std::size_t pattern() {
    const auto [place, is_new] = patterns_.try_emplace(codes_, timeline_.patterns.size());
    if (!is_new) return place->second;
    Timeline::Pattern pattern{.codes = codes_, .events = codes_.size()};
    Row& held = pattern.net;
    std::int64_t most_reserved = 0;
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      const Timeline::Piece& piece = known(codes_[i]).piece;
      const auto bytes = static_cast<std::int64_t>(piece.bytes);
      held[piece.category] += codes_[i] & Timeline::kGoes ? -bytes : bytes;
      most_reserved = std::max(most_reserved, held.back());
      if (codes_[i] & Timeline::kJoined || allocated(held) <= allocated(pattern.peak)) continue;
      pattern.peak = held;
      pattern.peak_events = i + 1;
    }
    pattern.peak.back() = most_reserved;
    timeline_.patterns.push_back(std::move(pattern));
    return place->second;
  }

  // Patterns in the order in which they stay whole: the highest span's, the last's and the first's,
  // then those that repeat most.
  std::vector<std::size_t> by_importance() const {
    std::vector<std::size_t> order(timeline_.patterns.size()), uses(order.size(), 0);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (order.empty()) return order;
    std::size_t highest = 0;
    std::int64_t held = allocated(timeline_.before), most = 0;
    for (const Timeline::Span& span : timeline_.spans) {
      const Timeline::Pattern& pattern = timeline_.patterns[span.pattern];
      ++uses[span.pattern];
      if (held + allocated(pattern.peak) > most) highest = span.pattern;
      most = std::max(most, held + allocated(pattern.peak));
      held += allocated(pattern.net);
    }
    uses[timeline_.spans.front().pattern] += spans();
    uses[timeline_.spans.back().pattern] += spans();
    uses[highest] += 3 * spans();
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t p) { return uses[p]; });
    return order;
  }

  // Leaves the pieces that are there before or after the span, at their last events. `sums` makes
  // one of all blocks of a tag and category that never go.
  void thin(Timeline::Pattern& pattern, bool sums) {
    std::map<Code, std::int64_t> left;  // of each piece: how many come; below 0, how many go
    for (const Code code : pattern.codes)
      left[code / Timeline::kPiece] += code & Timeline::kGoes ? -1 : 1;
    std::map<std::pair<std::uint32_t, std::uint8_t>, Timeline::Piece> summed;
    std::vector<Code> codes;
    for (auto next = pattern.codes.rbegin(); next != pattern.codes.rend(); ++next) {
      const Code code = *next;
      std::int64_t& count = left[code / Timeline::kPiece];
      if (code & Timeline::kGoes ? count >= 0 : count <= 0) continue;
      count += code & Timeline::kGoes ? 1 : -1;
      const auto& [piece, goes, number] = known(code);
      if (!sums || goes || piece.category == kCategoryCount) {
        codes.push_back(code & ~Timeline::kJoined);
      } else if (const auto [place, is_new] =
                     summed.try_emplace({piece.tag, piece.category}, piece);
                 !is_new) {
        place->second.bytes += piece.bytes;
        place->second.blocks += piece.blocks;
      }
    }
    for (const auto& [key, piece] : summed) {
      codes.push_back(Timeline::kPiece * static_cast<Code>(pieces_.size()));
      pieces_.push_back({piece});
    }
    pattern.codes.assign(codes.rbegin(), codes.rend());
    pattern.is_thinned = pattern.events > 0;
  }

  // Gives the pieces of a pattern their numbers on the page, unless that takes too many bytes.
  bool write(Timeline::Pattern& pattern, std::size_t most_bytes) {
    std::set<Known*> news;
    for (const Code code : pattern.codes)
      if (known(code).number < 0) news.insert(&known(code));
    const std::size_t bytes =
        bytes_ + kCodeBytes * pattern.codes.size() + kPieceBytes * news.size();
    if (bytes > most_bytes) return false;
    bytes_ = bytes;
    for (Known* piece : news) {
      piece->number = static_cast<Code>(timeline_.pieces.size());
      timeline_.pieces.push_back(piece->piece);
    }
    for (Code& code : pattern.codes)
      code = Timeline::kPiece * known(code).number + code % Timeline::kPiece;
    return true;
  }

  const EventLog::Reading& reading_;
  const std::size_t most_steps_;
  Timeline timeline_;  // its codes have indices of pieces_ until they are written
  std::vector<Known> pieces_;
  std::map<Timeline::Piece, Code> indices_;
  std::map<std::string, std::size_t> names_;
  std::map<std::vector<Code>, std::size_t> patterns_;
  Parts parts_;
  std::vector<Code> codes_;  // of the span that has not ended
  std::int64_t since_ = 0;
  std::size_t bytes_ = 0;  // of the page, as far as it is written
};

}  // namespace

Timeline pack(const EventLog::Reading& reading, std::size_t most_bytes) {
  std::size_t steps = 1, spans = 0;
  while (true) {
    Packer packer(reading, steps);
    const bool is_last = packer.spans() == spans;  // as more steps make no difference
    std::size_t bytes = 2 * packer.bytes();        // half of them for detail
    if (bytes <= most_bytes || is_last) bytes = packer.thin(most_bytes);
    if (bytes <= most_bytes || is_last) return packer.timeline();
    spans = packer.spans();
    steps *= 1 + bytes / std::max<std::size_t>(most_bytes, 1);
  }
}

}  // namespace ebb::memory::detail
