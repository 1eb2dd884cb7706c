// Ranges with holes, against a plain model: pages are committed, given back and walked over.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "ebb/allocator/detail/heap.h"
#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using memory::detail::BlockNode;
using memory::detail::Heap;
using State = BlockNode::State;

constexpr std::size_t kPage = 4096, kUnit = 512, kSmallest = 16 << 10, kRange = 512 << 10;

const memory::Profile kGrowing{.small_request = kSmallest, .growth_step = 8 * kPage};

enum class Kind : unsigned char { hole, free, moving, live };

// State of each 512 bytes, by range.
using Picture = std::map<std::uint64_t, std::vector<Kind>>;

Kind kind_of(const BlockNode& node) {
  if (node.state == State::live) return Kind::live;
  if (node.state == State::moving) return Kind::moving;
  return node.has_memory ? Kind::free : Kind::hole;
}

Picture picture_of(const Heap& heap) {
  Picture picture;
  for (const auto& [age, segment] : heap.segments()) {
    std::vector<Kind>& units = picture[age];
    const BlockNode* before = nullptr;
    for (const BlockNode* node = segment.first; node; node = node->after) {
      if (node->data() != segment.base + units.size() * kUnit) FAIL("a byte is lost or doubled");
      if (node->before != before || node->segment != &segment) FAIL("a node is linked wrongly");
      if (before && before->is_kin(*node)) FAIL("two idle neighbours of a kind are not merged");
      if (node->is_hole() && (units.size() * kUnit % kPage || node->bytes() % kPage))
        FAIL("a hole of no whole pages");
      units.insert(units.end(), node->bytes() / kUnit, kind_of(*node));
      before = node;
    }
    if (units.size() * kUnit != segment.bytes) FAIL("the nodes do not fill their range");
  }
  return picture;
}

struct Found {
  std::size_t bytes = 0;
  std::uint64_t age = 0;
  std::size_t offset = 0;
  bool operator==(const Found&) const = default;
};

// The place of a request among free blocks, by exhaustive search: the smallest that suffices, of
// those the oldest segment's, of those the lowest.
std::optional<Found> best_place(const Heap& heap, const Picture& picture, std::size_t bytes) {
  std::optional<Found> best;
  for (const auto& [age, units] : picture) {
    if (heap.segments().at(age).small != (bytes <= kSmallest)) continue;
    for (std::size_t begin = 0, end = 0; begin < units.size(); begin = end + 1) {
      for (end = begin; end < units.size() && units[end] == Kind::free; ++end) {
      }
      const Found place{(end - begin) * kUnit, age, begin * kUnit};
      if (place.bytes >= bytes && (!best || place.bytes < best->bytes)) best = place;
    }
  }
  return best;
}

// The row to commit for a request, by exhaustive search. A row is a hole with the free blocks
// beside it. Takes the smallest that suffices, or the largest of all if that takes fewer pages.
std::optional<Found> best_row(const Heap& heap, const Picture& picture, std::size_t bytes) {
  using Order = std::tuple<std::size_t, std::uint64_t, std::size_t>;  // bytes, age, hole's offset
  std::optional<std::pair<Order, Found>> smallest, largest;
  for (const auto& [age, units] : picture) {
    if (heap.segments().at(age).small != (bytes <= kSmallest)) continue;
    for (std::size_t hole = 0; hole < units.size(); ++hole) {
      if (units[hole] != Kind::hole || (hole > 0 && units[hole - 1] == Kind::hole)) continue;
      std::size_t begin = hole, end = hole;
      while (begin > 0 && units[begin - 1] == Kind::free) --begin;
      while (end < units.size() && units[end] == Kind::hole) ++end;
      const std::size_t hole_pages = (end - hole) * kUnit / kPage;
      while (end < units.size() && units[end] == Kind::free) ++end;
      const std::size_t row_bytes = (end - begin) * kUnit, ahead = (hole - begin) * kUnit;
      if (row_bytes < bytes) continue;
      const std::size_t missing = bytes > ahead ? bytes - ahead : 0;
      const std::size_t pages = std::min(hole_pages, (missing + kPage - 1) / kPage);
      const std::pair candidate(Order(row_bytes, age, hole * kUnit),
                                Found{pages * kPage, age, begin * kUnit});
      if (!smallest || candidate.first < smallest->first) smallest = candidate;
      if (!largest || candidate.first > largest->first) largest = candidate;
    }
  }
  if (!smallest) return {};
  return largest->second.bytes < smallest->second.bytes ? largest->second : smallest->second;
}

class FragmentingProgram {
 public:
  explicit FragmentingProgram(std::uint64_t seed) : random_(seed) {}

  void step() {
    const std::size_t kind = random_.below(20);
    if (kind < 6 && !live_.empty())
      give(random_.below(live_.size()));
    else if (kind < 15)
      take();
    else if (kind < 18)
      claim_pages();
    else if (kind == 18)
      claim_hole();
    else
      adopt_or_drop();
    check_free();
  }

  void finish() {
    while (!live_.empty()) give(live_.size() - 1);
    while (BlockNode* claimed = heap_.claim_pages(memory::kNoLimit)) settle(claimed, false);
    for (const auto& [age, segment] : heap_.segments()) CHECK(segment.is_idle());
  }

  Heap& heap() { return heap_; }
  const std::vector<BlockNode*>& live() const { return live_; }

  std::set<const BlockNode*> gone;  // blocks that were freed, whatever the nodes are now

 private:
  std::size_t bytes() {
    if (random_.one_in(2)) return kUnit * (1 + random_.below(3));  // few sizes: ties are common
    return kUnit * (1 + random_.below((random_.one_in(3) ? 64 * kPage : kSmallest) / kUnit));
  }

  void give(std::size_t which) {
    std::swap(live_[which], live_.back());
    gone.insert(live_.back());
    heap_.give(live_.back());
    live_.pop_back();
  }

  void take() {
    const std::size_t wanted = bytes();
    const Picture before = picture_of(heap_);
    const auto place = best_place(heap_, before, wanted);
    BlockNode* const fit = heap_.take(wanted);
    if ((fit != nullptr) != place.has_value()) FAIL("a fit was missed or made up");
    if (fit) {
      const memory::detail::Segment& segment = *fit->segment;
      if (fit->bytes() != wanted || segment.age != place->age ||
          fit->data() != segment.base + place->offset)
        FAIL("not the best place");
      live_.push_back(fit);
      return;
    }
    const auto expected = best_row(heap_, before, wanted);
    Heap::Row row = heap_.find_row(wanted);
    if ((row.first != nullptr) != expected.has_value()) FAIL("a row was missed or made up");
    if (!row.first) return adopt(wanted);
    const memory::detail::Segment& segment = *row.first->segment;
    const Found found{row.bytes, segment.age,
                      static_cast<std::size_t>(row.first->data() - segment.base)};
    if (!(found == *expected)) FAIL("not the best row");
    if (row.with_step < row.bytes || row.with_step % kPage) FAIL("a step that is none");
    heap_.claim(row, random_.one_in(2) ? row.with_step : row.bytes);
    // Other requests arrive while the device is asked.
    const std::size_t live = live_.size();
    if (random_.one_in(2)) {
      picture_of(heap_);
      if (live > 0) give(random_.below(live));
      if (BlockNode* node = heap_.take(kUnit * (1 + random_.below(8)))) live_.push_back(node);
    }
    if (random_.one_in(4)) {
      heap_.abandon(row);
      return;
    }
    const std::byte* const at = row.first->data();
    BlockNode* node = heap_.finish(row, wanted);
    if (node->data() != at || node->bytes() != wanted || !node->has_memory ||
        node->state != State::live)
      FAIL("a row became another block than was asked for");
    live_.push_back(node);
  }

  void claim_pages() {
    const Picture before = picture_of(heap_);
    std::size_t all = 0;
    for (const auto& [age, units] : before)
      for (std::size_t page = 0; page < units.size(); page += kPage / kUnit)
        if (std::all_of(units.begin() + static_cast<std::ptrdiff_t>(page),
                        units.begin() + static_cast<std::ptrdiff_t>(page + kPage / kUnit),
                        [](Kind kind) { return kind == Kind::free; }))
          all += kPage;
    const std::size_t most = random_.one_in(4) ? memory::kNoLimit : 1 + random_.below(40 * kPage);
    BlockNode* claimed = heap_.claim_pages(most);
    std::size_t sum = 0;
    for (const BlockNode* node = claimed; node; node = node->chain) {
      const auto offset = static_cast<std::size_t>(node->data() - node->segment->base);
      if (offset % kPage || node->bytes() % kPage || node->state != State::moving)
        FAIL("what was claimed is no whole pages");
      sum += node->bytes();
    }
    const std::size_t enough = most > all ? all : (most + kPage - 1) / kPage * kPage;
    if (sum != enough) FAIL("claimed " << sum << " of " << all << " where " << most << " would do");
    picture_of(heap_);
    settle(claimed, true);
  }

  void claim_hole() {
    const std::size_t wanted = kPage * (1 + random_.below(20));
    std::optional<std::pair<std::uint64_t, std::size_t>> first;
    for (const auto& [age, segment] : heap_.segments())
      for (const BlockNode* node = segment.first; node && !first && !segment.small;
           node = node->after)
        if (node->is_hole() && node->bytes() >= wanted)
          first = {age, static_cast<std::size_t>(node->data() - segment.base)};
    BlockNode* node = heap_.claim_hole(wanted);
    if ((node != nullptr) != first.has_value()) FAIL("a hole was missed or made up");
    if (!node) return;
    const std::pair found(node->segment->age,
                          static_cast<std::size_t>(node->data() - node->segment->base));
    if (found != *first || node->bytes() != wanted) FAIL("not the first hole");
    node->has_memory = random_.one_in(2);
    heap_.settle(node);
  }

  void settle(BlockNode* claimed, bool some_stay) {
    for (BlockNode *node = claimed, *next = nullptr; node; node = next) {
      next = node->chain;
      node->has_memory = some_stay && random_.one_in(4);
      heap_.settle(node);
    }
  }

  void adopt(std::size_t for_bytes) {
    heap_.add_segment(reinterpret_cast<void*>(next_base_), kRange, for_bytes, false);
    next_base_ -= 2 * kRange;  // addresses fall while ages rise: order must follow the ages
  }

  void adopt_or_drop() {
    for (auto at = heap_.segments().begin(); at != heap_.segments().end(); ++at)
      if (at->second.is_idle() && !at->second.first->has_memory) {
        heap_.drop(at);
        return;
      }
    if (heap_.segments().size() < 6) adopt(random_.one_in(2) ? kUnit : 2 * kSmallest);
  }

  void check_free() {
    const Picture picture = picture_of(heap_);
    std::size_t free = 0, whole = 0, pieces = 0, largest = 0;
    for (const auto& [age, units] : picture) {
      std::size_t piece = 0;
      for (const Kind kind : units) {
        piece = kind == Kind::free ? piece + kUnit : 0;
        if (piece == kUnit) ++pieces;
        largest = std::max(largest, piece);
      }
      for (std::size_t page = 0; page < units.size(); page += kPage / kUnit) {
        std::size_t here = 0;
        for (std::size_t i = 0; i < kPage / kUnit; ++i) here += units[page + i] == Kind::free;
        free += here * kUnit;
        if (here == kPage / kUnit) whole += kPage;
      }
    }
    const Heap::FreeBytes bytes = heap_.free_bytes();
    if (bytes.in_pages != whole || bytes.all != free || bytes.pieces != pieces ||
        heap_.largest_free_bytes() != largest)
      FAIL("free bytes are miscounted");
  }

  Random random_;
  Heap heap_{kGrowing};
  std::vector<BlockNode*> live_;
  std::uintptr_t next_base_ = std::uintptr_t{1} << 40;
};

TEST_CASE("the places, rows, pages and holes of a heap are those of a plain model") {
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    FragmentingProgram program(seed);
    for (int i = 0; i < 1'000; ++i) program.step();
    program.finish();
  }
}

TEST_CASE(
    "pages are claimed of the largest stretch, whatever the order in which others were freed") {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    Heap heap(kGrowing);
    heap.add_segment(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 30), 16 * kRange, kRange,
                     true);
    std::vector<BlockNode*> nodes;
    for (std::size_t i = 0; i < 4; ++i) {
      nodes.push_back(heap.take(kRange + i * kPage));
      heap.take(2 * kSmallest);
    }
    BlockNode* const rest = heap.take(16 * kRange - 4 * kRange - 6 * kPage - 8 * kSmallest);
    REQUIRE(rest);
    const std::byte *const begin = nodes[3]->data(), *const end = nodes[3]->end();
    for (const std::size_t i : order) heap.give(nodes[i]);
    const BlockNode* claimed = heap.claim_pages(kPage);
    REQUIRE(claimed);
    CHECK((begin <= claimed->data() && claimed->end() == end));
    CHECK(claimed->bytes() == kPage);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a walk goes on behind a segment that is dropped where it stands") {
  Heap heap(kGrowing);
  for (const std::uintptr_t base : {1u << 20, 2u << 20, 3u << 20})
    heap.add_segment(reinterpret_cast<std::byte*>(base), kRange, kSmallest, true);
  BlockNode* live = heap.take(kSmallest);  // of the first: all fit alike
  std::size_t nodes = 100;
  Heap::Walk walk(heap), at_end(heap);
  while (at_end.next(nodes)) {
  }
  CHECK(at_end.is_done());
  Heap::Walk other(heap);
  nodes = 2;
  CHECK(other.next(nodes) == live);
  nodes = 1;
  CHECK(other.next(nodes) == nullptr);  // walked the rest of the first range: now at the second
  heap.drop(std::next(heap.segments().begin()));
  heap.give(live);
  heap.drop(heap.segments().begin());  // where the first walk stands
  live = heap.take(kSmallest);
  nodes = 100;
  CHECK(walk.next(nodes) == live);
  CHECK(other.next(nodes) == live);
  CHECK(walk.next(nodes) == nullptr);
  CHECK(walk.is_done());
}

TEST_CASE("a walk meets every block that lives all the while exactly once, whatever else happens") {
  std::size_t all_stayed = 0;
  for (std::uint64_t seed = 30; seed < 100; ++seed) {
    FragmentingProgram program(seed);
    for (int i = 0; i < 400; ++i) program.step();
    std::set<const BlockNode*> stayed(program.live().begin(), program.live().end());
    program.gone.clear();
    std::map<const BlockNode*, int> met;
    {
      Heap::Walk walk(program.heap());
      while (!walk.is_done()) {
        std::size_t some = 40;
        while (const BlockNode* node = walk.next(some)) ++met[node];
        program.step();
      }
    }
    std::erase_if(stayed, [&](const BlockNode* node) { return program.gone.contains(node); });
    all_stayed += stayed.size();
    for (const BlockNode* node : stayed)
      if (met[node] != 1) FAIL_CHECK("a block was met " << met[node] << " times");
    program.finish();
  }
  CHECK(all_stayed > 100);
}

}  // namespace
}  // namespace ebb::tests
