#include "ebb/allocator/detail/heap.h"

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
  heap.add_segment(address(1 << 20), 2048, kSmall, true);
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
  heap.add_segment(address(1 << 20), kSegment, kSmall, false);
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
  heap.add_segment(address(1 << 20), kSegment, kSmall, true);
  CHECK(heap.take(512)->last_user() == nullptr);
}

TEST_CASE("thousands of free blocks of one size are still found in order") {
  constexpr std::size_t kCount = 20'000;
  Heap heap(kProfile);
  heap.add_segment(address(std::uintptr_t{1} << 40), 2 * kCount * 512, kSmall, true);
  std::vector<BlockNode*> nodes;
  for (std::size_t i = 0; i < 2 * kCount; ++i) nodes.push_back(heap.take(512));
  Random random(6);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kCount; ++i) order.push_back(2 * i);
  for (std::size_t i = kCount; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  for (const std::size_t i : order) heap.give(nodes[i]);
  const std::byte* const base = heap.segments().begin()->second.base;
  bool in_order = true;
  for (std::size_t i = 0; i < kCount; ++i) in_order &= heap.take(512)->data() == base + 1024 * i;
  CHECK(in_order);
  CHECK(heap.take(512) == nullptr);
}

}  // namespace
}  // namespace ebb::tests
