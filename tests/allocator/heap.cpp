#include "ebb/allocator/detail/heap.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ebb/tests/allocator/model.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using memory::detail::BlockNode;
using memory::detail::Heap;

constexpr std::size_t kSmall = 16 << 10;

const memory::Profile kProfile{.small_request = kSmall};
constexpr std::size_t kSegment = 64 << 10;

std::byte* address(std::uintptr_t of) { return reinterpret_cast<std::byte*>(of); }

struct Place {
  std::uint64_t age = 0;
  std::size_t offset = 0;
  bool operator==(const Place&) const = default;
};

// Walks every segment, checks that blocks tile it, and finds the best place for a request by
// exhaustive search.
std::optional<Place> best_place(const Heap& heap, std::size_t bytes) {
  std::optional<std::tuple<std::size_t, std::uint64_t, std::size_t>> best;
  for (const auto& [age, segment] : heap.segments()) {
    const BlockNode* before = nullptr;
    std::size_t offset = 0;
    for (const BlockNode* node = segment.first; node; node = node->after) {
      if (node->data() != segment.base + offset) FAIL("a byte is lost or doubled");
      if (node->segment != &segment || node->before != before) FAIL("a node is linked wrongly");
      if (before && before->is_kin(*node)) FAIL("two free neighbours are not merged");
      if (node->is_free() && segment.small == (bytes <= kSmall) && node->bytes() >= bytes) {
        const std::tuple candidate(node->bytes(), age, offset);
        if (!best || candidate < *best) best = candidate;
      }
      offset += node->bytes();
      before = node;
    }
    if (offset != segment.bytes) FAIL("the nodes do not fill their segment");
  }
  if (!best) return {};
  return Place{std::get<1>(*best), std::get<2>(*best)};
}

Place place_of(const BlockNode* node) {
  return {node->segment->age, static_cast<std::size_t>(node->data() - node->segment->base)};
}

TEST_CASE("every block goes to the best fit, then the oldest segment, then the lowest offset") {
  Random random(4);
  Heap heap(kProfile);
  std::vector<BlockNode*> live;
  std::uintptr_t next_base = std::uintptr_t{1} << 40;
  for (int i = 0; i < 60'000; ++i) {
    if (random.below(120) < live.size()) {
      std::swap(live[random.below(live.size())], live.back());
      heap.give(live.back());
      live.pop_back();
      continue;
    }
    // Few sizes, so that ties are common.
    const std::size_t most = random.one_in(3) ? kSegment : kSmall;
    const std::size_t bytes = 512 * (1 + random.below(random.one_in(2) ? 3 : most / 512));
    const auto expected = best_place(heap, bytes);
    BlockNode* node = heap.take(bytes);
    if ((node != nullptr) != expected.has_value()) FAIL("a fit was missed or made up");
    if (!node) {
      heap.adopt(address(next_base), kSegment, bytes);
      next_base -= 2 * kSegment;  // addresses fall while ages rise: order must follow the ages
      node = heap.take(bytes);
    } else if (!(place_of(node) == *expected)) {
      FAIL("not the best place");
    }
    if (node->bytes() != bytes) FAIL("not cut to the byte");
    live.push_back(node);
  }
  for (BlockNode* node : live) heap.give(node);
  for (const auto& [age, segment] : heap.segments()) CHECK(segment.is_idle());
}

TEST_CASE("a block had whoever used its pieces last: one, nobody, or many") {
  constexpr char kUsers[2] = {};
  const memory::User one = &kUsers[0], two = &kUsers[1], many = memory::Block::many_users();
  const auto [of_first, of_second, of_both] =
      GENERATE_REF(table<memory::User, memory::User, memory::User>({{one, one, one},
                                                                    {one, two, many},
                                                                    {one, nullptr, one},
                                                                    {nullptr, two, two},
                                                                    {nullptr, nullptr, nullptr},
                                                                    {many, one, many},
                                                                    {one, many, many}}));
  const bool first_goes_first = GENERATE(true, false);
  Heap heap(kProfile);
  heap.adopt(address(1 << 20), 2048, kSmall);
  BlockNode* first = heap.take(1024);
  BlockNode* second = heap.take(1024);
  CHECK(first->last_user() == nullptr);
  CHECK(second->last_user() == nullptr);
  first->set_last_user(of_first);
  second->set_last_user(of_second);
  heap.give(first_goes_first ? first : second);
  heap.give(first_goes_first ? second : first);
  BlockNode* both = heap.take(2048);
  CHECK(both->last_user() == of_both);
  heap.give(both);
  BlockNode* piece = heap.take(512);
  CHECK(piece->last_user() == of_both);
  CHECK(heap.take(1536)->last_user() == of_both);
}

TEST_CASE("memory that is new, and a block without any, had no user before") {
  constexpr char kUser = 0;
  Heap heap(kProfile);
  const auto used = [&](BlockNode* node) {
    node->set_last_user(&kUser);
    return node;
  };
  const auto fill = [&] {
    auto row = heap.find_row(kProfile.page_bytes);
    heap.claim(row, row.bytes);
    return heap.finish(row, kProfile.page_bytes);
  };
  heap.adopt_addresses(address(1 << 20), kSegment, kSmall);
  BlockNode* node = used(fill());
  heap.give(node);
  BlockNode* claimed = heap.claim_pages(memory::kNoLimit);  // it goes back to the device
  REQUIRE(claimed);
  claimed->has_memory = false;
  heap.settle(claimed);
  node = fill();
  CHECK(node->last_user() == nullptr);
  heap.give(used(node));
  claimed = heap.claim_pages(memory::kNoLimit);
  claimed->has_memory = false;
  heap.settle(claimed);
  heap.drop(heap.segments().begin());  // its node is used again by what comes next
  BlockNode* empty = heap.take_empty();
  CHECK(empty->last_user() == nullptr);
  heap.give(used(empty));
  heap.adopt(address(1 << 20), kSegment, kSmall);
  CHECK(heap.take(512)->last_user() == nullptr);
}

TEST_CASE("thousands of free blocks of one size are still found in order") {
  constexpr std::size_t kCount = 20'000;
  Heap heap(kProfile);
  heap.adopt(address(std::uintptr_t{1} << 40), 2 * kCount * 512, kSmall);
  std::vector<BlockNode*> nodes;
  for (std::size_t i = 0; i < 2 * kCount; ++i) nodes.push_back(heap.take(512));
  Random random(6);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kCount; ++i) order.push_back(2 * i);
  for (std::size_t i = kCount; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  for (const std::size_t i : order) heap.give(nodes[i]);
  bool in_order = true;
  for (std::size_t i = 0; i < kCount; ++i) in_order &= place_of(heap.take(512)).offset == 1024 * i;
  CHECK(in_order);
  CHECK(heap.take(512) == nullptr);
}

}  // namespace
}  // namespace ebb::tests
