#include "ebb/allocator/detail/free_index.h"

namespace ebb::memory::detail {
namespace {

bool precedes(const BlockNode* a, const BlockNode* b) noexcept {
  if (a->key != b->key) return a->key < b->key;
  if (a->segment != b->segment) return a->segment->age < b->segment->age;
  return a->data() < b->data();
}

// A treap: ordered by precedes(), heap-ordered by priority. Its shape affects the cost only.

void treap_insert(BlockNode*& root, BlockNode* node) noexcept {
  BlockNode** at = &root;
  while (*at && (*at)->priority >= node->priority)
    at = precedes(node, *at) ? &(*at)->left : &(*at)->right;
  BlockNode* rest = *at;  // split below the node into smaller and larger nodes
  *at = node;
  BlockNode** left = &node->left;
  BlockNode** right = &node->right;
  while (rest) {
    if (precedes(rest, node)) {
      *left = rest;
      left = &rest->right;
      rest = rest->right;
    } else {
      *right = rest;
      right = &rest->left;
      rest = rest->left;
    }
  }
  *left = *right = nullptr;
}

void treap_erase(BlockNode*& root, BlockNode* node) noexcept {
  BlockNode** at = &root;
  while (*at != node) at = precedes(node, *at) ? &(*at)->left : &(*at)->right;
  BlockNode* left = node->left;  // join both subtrees in its place
  BlockNode* right = node->right;
  while (left && right) {
    if (left->priority >= right->priority) {
      *at = left;
      at = &left->right;
      left = left->right;
    } else {
      *at = right;
      at = &right->left;
      right = right->left;
    }
  }
  *at = left ? left : right;
}

BlockNode* treap_first_of_at_least(BlockNode* root, std::size_t bytes) noexcept {
  BlockNode* found = nullptr;
  while (root) {
    if (root->key >= bytes) {
      found = root;
      root = root->left;
    } else {
      root = root->right;
    }
  }
  return found;
}

BlockNode* treap_last(BlockNode* root) noexcept {
  while (root->right) root = root->right;
  return root;
}

BlockNode* treap_before(BlockNode* root, const BlockNode* node) noexcept {
  BlockNode* found = nullptr;
  while (root) {
    if (precedes(root, node)) {
      found = root;
      root = root->right;
    } else {
      root = root->left;
    }
  }
  return found;
}

// Puts nodes of at least `bytes` in front of `chain`, in ascending order.
void treap_chain(BlockNode* root, std::size_t bytes, BlockNode*& chain) noexcept {
  for (; root; root = root->right) {
    if (root->key < bytes) continue;
    treap_chain(root->left, bytes, chain);
    root->chain = chain;
    chain = root;
  }
}

}  // namespace

void FreeIndex::put_in(BlockNode* node) noexcept {
  const std::size_t bin = bin_of(node->key);
  random_ = random_ * 1664525u + 1013904223u;
  node->priority = random_;
  treap_insert(roots_[bin], node);
  filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  filled_words_ |= std::uint64_t{1} << (bin / 64);
}

void FreeIndex::take_out(BlockNode* node) noexcept {
  const std::size_t bin = bin_of(node->key);
  treap_erase(roots_[bin], node);
  if (roots_[bin]) return;
  filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  if (filled_[bin / 64] == 0) filled_words_ &= ~(std::uint64_t{1} << (bin / 64));
}

BlockNode* FreeIndex::best_fit(std::size_t bytes) const noexcept {
  const std::size_t bin = bin_of(bytes);
  BlockNode* found = treap_first_of_at_least(roots_[bin], bytes);
  if (!found) {
    const std::size_t next = next_filled_bin(bin + 1);
    if (next < kBins) found = treap_first_of_at_least(roots_[next], bytes);
  }
  if (!in_hand_ || in_hand_->key < bytes) return found;
  return !found || precedes(in_hand_, found) ? in_hand_ : found;
}

BlockNode* FreeIndex::last() noexcept {
  put_down();
  const std::size_t bin = last_filled_bin(kBins);
  return bin < kBins ? treap_last(roots_[bin]) : nullptr;
}

BlockNode* FreeIndex::before(const BlockNode* node) noexcept {
  put_down();
  const std::size_t bin = bin_of(node->key);
  if (BlockNode* found = treap_before(roots_[bin], node)) return found;
  const std::size_t lower = last_filled_bin(bin);
  return lower < kBins ? treap_last(roots_[lower]) : nullptr;
}

BlockNode* FreeIndex::chain_of_at_least(std::size_t bytes) noexcept {
  put_down();
  BlockNode* chain = nullptr;
  for (std::size_t bin = next_filled_bin(bin_of(bytes)); bin < kBins;
       bin = next_filled_bin(bin + 1))
    treap_chain(roots_[bin], bytes, chain);
  return chain;
}

std::size_t FreeIndex::next_filled_bin(std::size_t from) const noexcept {
  const std::size_t word = from / 64;
  if (word >= kWords) return kBins;
  const std::uint64_t here = filled_[word] & (~std::uint64_t{0} << (from % 64));
  if (here != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(here));
  const std::uint64_t words = filled_words_ & ~((std::uint64_t{2} << word) - 1);
  if (words == 0) return kBins;
  const auto next = static_cast<std::size_t>(std::countr_zero(words));
  return next * 64 + static_cast<std::size_t>(std::countr_zero(filled_[next]));
}

std::size_t FreeIndex::last_filled_bin(std::size_t before) const noexcept {
  if (before == 0) return kBins;
  const std::size_t last = before - 1, word = last / 64;
  const std::uint64_t here = filled_[word] & (~std::uint64_t{0} >> (63 - last % 64));
  if (here != 0) return word * 64 + static_cast<std::size_t>(63 - std::countl_zero(here));
  const std::uint64_t words = filled_words_ & ((std::uint64_t{1} << word) - 1);
  if (words == 0) return kBins;
  const auto lower = static_cast<std::size_t>(63 - std::countl_zero(words));
  return lower * 64 + static_cast<std::size_t>(63 - std::countl_zero(filled_[lower]));
}

}  // namespace ebb::memory::detail
