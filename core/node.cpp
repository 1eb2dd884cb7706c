#include "ebb/core/node.h"

#include <atomic>
#include <vector>

namespace ebb {

namespace detail {
// Destroying a node drops its producers, whose destruction would recurse down a chain as long as
// the program. Nodes that end while another ends are put on a list instead.
void destroy(Node* node) noexcept {
  thread_local constinit std::vector<Node*>* ending = nullptr;
  if (ending) {
    ending->push_back(node);
    return;
  }
  if (node->inputs.empty() && !node->extra) {
    delete node;
    return;
  }
  std::vector<Node*> list;
  ending = &list;
  delete node;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    delete next;
  }
  ending = nullptr;
}
}  // namespace detail

void Node::release_tape() noexcept {
  for (Source& source : inputs) {
    source.kept.drop();
    source.producer = nullptr;
  }
  for (Result& result : outputs) result.kept.drop();
  if (extra) extra->recompute = nullptr;
  released = true;
}

std::uint64_t Node::next_number() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

const OpDef leaf_op = {.name = "leaf", .infer = nullptr};

}  // namespace ebb
