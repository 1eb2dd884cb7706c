#include "ebb/graph/placement.h"

#include <algorithm>
#include <map>
#include <random>

#include "ebb/tests/catch.h"

using ebb::detail::ArenaLayout;
using ebb::detail::BufferLife;
using ebb::detail::place;

TEST_CASE("buffers alive together never overlap, and the arena is at least the bound", "[host]") {
  std::mt19937 random(1);
  const auto draw = [&](int low, int high) {
    return static_cast<std::size_t>(std::uniform_int_distribution<int>(low, high)(random));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<BufferLife> buffers(draw(0, 60));
    for (BufferLife& b : buffers) {
      b.first = draw(0, 40);
      b.last = b.first + draw(0, 15);
      b.bytes = 512 * draw(1, 50);
    }
    const ArenaLayout layout = place(buffers);
    std::size_t bound = 0;
    for (std::size_t step = 0; step < 60; ++step) {
      std::size_t alive = 0;
      for (const BufferLife& b : buffers)
        if (b.first <= step && step <= b.last) alive += b.bytes;
      bound = std::max(bound, alive);
    }
    REQUIRE(layout.lower_bound_bytes == bound);
    REQUIRE(layout.total_bytes >= bound);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      REQUIRE(layout.offsets[i] + buffers[i].bytes <= layout.total_bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together =
            buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        const bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                           layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
        REQUIRE((!together || apart));
      }
    }
  }
}

TEST_CASE("a training chain is laid out at its bound", "[host]") {
  // Activations are freed in the reverse order of their making, beside gradients passed along.
  std::vector<BufferLife> buffers;
  const std::size_t layers = 20;
  for (std::size_t i = 0; i < layers; ++i) buffers.push_back({i, 2 * layers - i, 4096});
  for (std::size_t i = 0; i < layers; ++i) buffers.push_back({layers + i, layers + i + 1, 4096});
  const ArenaLayout layout = place(buffers);
  CHECK(layout.total_bytes == layout.lower_bound_bytes);
}

TEST_CASE("a hundred thousand buffers are laid out, none on another, a chain at its bound",
          "[host]") {
  // Too many buffers to compare in pairs. At each step, neighbours in the order of offsets are
  // compared instead.
  std::vector<BufferLife> buffers;
  const std::size_t layers = 50'000;
  for (std::size_t i = 0; i < layers; ++i)
    buffers.push_back({i, 2 * layers - i, 512 * (1 + i * 7919 % 13)});
  for (std::size_t i = 0; i < layers; ++i)
    buffers.push_back({layers + i, layers + i + 1, 512 * (1 + i * 104729 % 11)});
  const ArenaLayout layout = place(buffers);
  CHECK(layout.total_bytes <= layout.lower_bound_bytes * 101 / 100);
  std::vector<std::pair<std::size_t, std::size_t>> events;  // step, buffer
  for (std::size_t b = 0; b < buffers.size(); ++b) events.emplace_back(buffers[b].first, b);
  std::sort(events.begin(), events.end());
  std::map<std::size_t, std::size_t> alive;  // by offset
  std::multimap<std::size_t, std::size_t> dying;
  for (const auto& [step, b] : events) {
    while (!dying.empty() && dying.begin()->first < step) {
      alive.erase(dying.begin()->second);
      dying.erase(dying.begin());
    }
    const std::size_t begin = layout.offsets[b], end = begin + buffers[b].bytes;
    const auto next = alive.lower_bound(begin);
    REQUIRE((next == alive.end() || end <= next->first));
    REQUIRE((next == alive.begin() || std::prev(next)->second <= begin));
    alive.emplace(begin, end);
    dying.emplace(buffers[b].last, begin);
  }
}

TEST_CASE("neighbouring gaps become one, and the last one grows with the arena", "[host]") {
  // More buffers than place() compares in pairs, most of them alive at a step of their own.
  std::vector<BufferLife> buffers;
  const std::size_t many = 4200;
  for (std::size_t i = 0; i < many; ++i) buffers.push_back({0, 0, 512});  // freed side by side
  buffers.push_back({1, 1, many * 512});                                  // takes all their room
  for (std::size_t i = 0; i < many; ++i) buffers.push_back({2, 2, 512});  // and the other way round
  const ArenaLayout merged = place(buffers);
  CHECK(merged.total_bytes == merged.lower_bound_bytes);

  buffers.clear();
  for (std::size_t i = 0; i < many; ++i) buffers.push_back({100 + i, 100 + i, 512});
  const std::size_t kib = 1024;
  // C takes B's place above A and needs more than B had, so that the arena grows. The last three
  // are the same backwards in time.
  for (const BufferLife& b : {BufferLife{0, 2, 512 * kib}, BufferLife{0, 0, 512 * kib},
                              BufferLife{1, 2, 768 * kib}, BufferLife{50, 52, 512 * kib},
                              BufferLife{52, 52, 512 * kib}, BufferLife{50, 51, 768 * kib}})
    buffers.push_back(b);
  const ArenaLayout grown = place(buffers);
  CHECK(grown.total_bytes == grown.lower_bound_bytes);
}
