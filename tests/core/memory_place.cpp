#include "ebb/core/memory/place.h"

#include <algorithm>
#include <map>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::memory {
namespace {

// Requires that no buffer lies on another. At each step, neighbours in the order of offsets are
// compared.
void require_apart(const std::vector<Lifetime>& buffers, const Placement& placed) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // first step, buffer
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].bytes > 0 && buffers[b].first < buffers[b].end)
      order.emplace_back(buffers[b].first, b);
  std::sort(order.begin(), order.end());
  std::map<std::size_t, std::size_t> alive;       // end by offset
  std::multimap<std::size_t, std::size_t> dying;  // offset by step
  for (const auto& [step, b] : order) {
    while (!dying.empty() && dying.begin()->first <= step) {
      alive.erase(dying.begin()->second);
      dying.erase(dying.begin());
    }
    const std::size_t begin = placed.offsets[b], end = begin + buffers[b].bytes;
    REQUIRE(end <= placed.total_bytes);
    const auto next = alive.lower_bound(begin);
    REQUIRE((next == alive.end() || end <= next->first));
    REQUIRE((next == alive.begin() || std::prev(next)->second <= begin));
    alive.emplace(begin, end);
    dying.emplace(buffers[b].end, begin);
  }
}

std::size_t draw(std::mt19937& random, std::size_t low, std::size_t high) {
  return low + random() % (high - low + 1);
}

// Cuts a rectangle of `steps` and `bytes` at random, so that the tightest placement is known.
std::vector<Lifetime> cut(std::size_t pieces, std::size_t steps, std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<Lifetime> all = {{0, steps, bytes}};
  while (all.size() < pieces) {
    Lifetime& piece = all[random() % all.size()];
    Lifetime rest = piece;
    if (random() % 2) {
      if (piece.end - piece.first < 2) continue;
      piece.end = rest.first = draw(random, piece.first + 1, piece.end - 1);
    } else {
      if (piece.bytes < 2) continue;
      piece.bytes = draw(random, 1, piece.bytes - 1);
      rest.bytes -= piece.bytes;
    }
    all.push_back(rest);
  }
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

TEST_CASE("buffers alive together never overlap, whatever their sizes, and the bound is exact",
          "[host]") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> buffers(draw(random, 0, 60));
    for (Lifetime& b : buffers) {
      b.first = draw(random, 0, 40);
      b.end = b.first + draw(random, 0, 15);
      b.bytes = 3 * draw(random, 0, 50);
    }
    const Placement placed = place(buffers, {.steps = 20'000});
    std::size_t bound = 0;
    for (std::size_t step = 0; step < 60; ++step) {
      std::size_t alive = 0;
      for (const Lifetime& b : buffers)
        if (b.first <= step && step < b.end) alive += b.bytes;
      bound = std::max(bound, alive);
    }
    REQUIRE(placed.lower_bound_bytes == bound);
    REQUIRE(placed.total_bytes >= bound);
    REQUIRE(place(buffers, {.steps = 20'000}).offsets == placed.offsets);
    for (const std::size_t offset : placed.offsets) REQUIRE(offset % 3 == 0);
    require_apart(buffers, placed);
  }
}

TEST_CASE("rectangles cut at random are put together again, to the percent stated", "[host]") {
  struct Row {
    std::size_t pieces, steps, bytes;
    double most;
  };
  const auto [pieces, steps, bytes, most] =
      GENERATE(Row{300, 100'000, 1 << 24, 1}, Row{1000, 100'000, 1 << 24, 1.06},
               Row{3000, 100'000, 1 << 24, 1.06}, Row{300, 50, 10'000, 1.02});
  const std::vector<Lifetime> buffers = cut(pieces, steps, bytes);
  const Placement placed = place(buffers);
  CAPTURE(pieces, steps, placed.total_bytes);
  REQUIRE(placed.lower_bound_bytes == bytes);
  CHECK(static_cast<double>(placed.total_bytes) <= most * static_cast<double>(bytes));
  require_apart(buffers, placed);
}

// A stack in which some neighbours are replaced by others of as many bytes, again and again.
std::vector<Lifetime> interlocked(std::mt19937& random, std::size_t pieces, std::size_t run) {
  std::vector<Lifetime> alive(draw(random, 1, 30)), all;
  for (Lifetime& piece : alive) piece = {0, 0, draw(random, 1, 1000)};
  for (std::size_t step = 1; all.size() < pieces; ++step) {
    const auto from = alive.begin() + static_cast<std::ptrdiff_t>(random() % alive.size());
    const auto to =
        from + std::min(alive.end() - from, static_cast<std::ptrdiff_t>(draw(random, 1, run)));
    std::size_t bytes = 0;
    for (auto piece = from; piece != to; bytes += piece++->bytes)
      all.push_back({piece->first, step, piece->bytes});
    std::vector<Lifetime> made;
    for (; made.size() < run && bytes > 1 && random() % 3; bytes -= made.back().bytes)
      made.push_back({step, 0, draw(random, 1, bytes - 1)});
    made.push_back({step, 0, bytes});
    alive.insert(alive.erase(from, to), made.begin(), made.end());
    for (Lifetime& piece : alive) piece.end = step + 1;
  }
  all.insert(all.end(), alive.begin(), alive.end());
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

TEST_CASE("stacks that interlock are put together again", "[host]") {
  std::mt19937 random(1);
  for (std::size_t round = 0; round < 60; ++round) {
    const std::vector<Lifetime> buffers = interlocked(random, 10 + 6 * round, 1 + round % 8);
    const Placement placed = place(buffers);
    CAPTURE(round, buffers.size());
    REQUIRE(placed.total_bytes == placed.lower_bound_bytes);
    require_apart(buffers, placed);
  }
}

TEST_CASE("the search finds what no order finds", "[host]") {
  const std::vector<Lifetime> buffers = {{0, 3, 2}, {3, 5, 6}, {2, 5, 1}, {0, 2, 5}, {2, 3, 4}};
  CHECK(place(buffers, {.steps = 0}).total_bytes == 8);
  CHECK(place(buffers).total_bytes == 7);
}

TEST_CASE("seven buffers are as tight as the best order of putting each on those before it",
          "[host]") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> buffers(7);
    for (Lifetime& b : buffers) {
      b.first = draw(random, 0, 5);
      b.end = draw(random, b.first + 1, 6);
      b.bytes = draw(random, 1, 9);
    }
    std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5, 6}, tops(7);
    std::size_t best = 7 * 9;
    do {
      std::size_t total = 0;
      for (std::size_t i = 0; i < 7; ++i) {
        const Lifetime& b = buffers[order[i]];
        std::size_t at = 0;
        for (std::size_t j = 0; j < i; ++j)
          if (buffers[order[j]].first < b.end && b.first < buffers[order[j]].end)
            at = std::max(at, tops[order[j]]);
        tops[order[i]] = at + b.bytes;
        total = std::max(total, tops[order[i]]);
      }
      best = std::min(best, total);
    } while (std::next_permutation(order.begin(), order.end()));
    REQUIRE(place(buffers).total_bytes == best);
  }
}

TEST_CASE("a hundred thousand buffers of a chain are at their bound within a percent", "[host]") {
  std::vector<Lifetime> buffers;
  const std::size_t layers = 50'000;
  for (std::size_t i = 0; i < layers; ++i)
    buffers.push_back({i, 2 * layers - i + 1, 512 * (1 + i * 7919 % 13)});
  for (std::size_t i = 0; i < layers; ++i)
    buffers.push_back({layers + i, layers + i + 2, 512 * (1 + i * 104729 % 11)});
  const Placement placed = place(buffers);
  CHECK(placed.total_bytes <= placed.lower_bound_bytes * 101 / 100);
  require_apart(buffers, placed);
}

TEST_CASE("bad lifetimes are refused with their number and the line", "[host]") {
  const std::size_t half = std::size_t{1} << 62;
  const std::vector<Lifetime> backwards = {{0, 1, 8}, {5, 4, 8}};
  CHECK_ERROR_HERE(place(backwards), Error,
                   "[place] buffer 1 begins at step 5 and ends before that, at 4");
  const std::vector<Lifetime> large = {{0, 1, half}, {1, 2, half}, {2, 3, 1}};
  CHECK_ERROR_HERE(place(large), Error,
                   "[place] buffer 2 of 1 bytes makes the sum of all sizes larger than 2^63");
  CHECK(place(std::span(large).first(2)).total_bytes == half);
  CHECK(place({}).total_bytes == 0);
}

}  // namespace
}  // namespace ebb::memory
