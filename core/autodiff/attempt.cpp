#include "ebb/core/autodiff/attempt.h"

#include "ebb/core/tensor/node.h"

namespace ebb::detail {

// Here, as the destructor, because a header that includes attempt.h alone does not know a Node.
Attempt::Attempt() noexcept : outer_(current()) { current() = this; }
Attempt::~Attempt() {
  current() = outer_;
  if (!draws_.fails()) return;
  take_back_gradients();
  for (const auto& [set, take_back] : declarations_) take_back();
}

// Between two of these the program may have called zero_grad(): what was made then is of this
// attempt, whatever there was before.
void Attempt::note(const Ref<Node>& leaf, bool made) {
  const auto [entry, is_new] = gradients_.try_emplace(leaf.get(), Change{leaf, made});
  if (!is_new && made) entry->second.made = true;
}

void Attempt::take_back_gradients() noexcept {
  for (const auto& [node, change] : gradients_) {
    Node::Extra& extra = *change.leaf->extra;
    if (!extra.tensor.defined()) continue;  // zero_grad() has been called since
    if (change.made) extra.tensor = Tensor();
    extra.partial = !change.made;
  }
}

}  // namespace ebb::detail
