#include "ebb/core/tensor/node.h"

#include <atomic>
#include <utility>

#include "ebb/core/tensor/tape_record.h"

namespace ebb {

namespace detail {
// Destroying a node drops its producers, whose destruction would recurse down a chain as long as
// the program. A node that ends while another is being destroyed waits in a list instead. The list
// is linked by `root`, no longer needed, because there may be no memory for a container.
void destroy(Node* node) noexcept {
  thread_local constinit Node* waiting = nullptr;
  thread_local constinit bool ends = false;
  if (ends) {
    node->root = std::exchange(waiting, node);
    return;
  }
  ends = true;
  delete node;
  while (waiting) {
    Node* const next = std::exchange(waiting, waiting->root);
    delete next;
  }
  ends = false;
}

void TapeRecord::drop() noexcept {
  for (Source& source : inputs) source.producer = nullptr;
  for (Input& input : kept_inputs) input.kept.drop();
  for (Kept& kept : kept_outputs) kept.drop();
  kept_captures.clear();
  if (extra) extra->recompute = nullptr;
  released = true;
}

std::uint64_t TapeRecord::next_number() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace detail

constinit const OpDef leaf_op = {.name = "leaf", .infer = nullptr, .is_source = true};

}  // namespace ebb
