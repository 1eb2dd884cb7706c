#include "ebb/core/autodiff/attempt.h"

#include <exception>

#include "ebb/core/tensor/node.h"

namespace ebb::detail {

namespace {
// Copies all of a memory to another of the same size, on one device.
void copy_values(const Storage& from, const Storage& to) {
  Runtime& runtime = from.device().runtime();
  Stream* const stream = runtime.stream();
  const Storage::Use reads(from, stream), writes(to, stream);
  runtime.copy(stream, to.data(), from.data(), from.bytes());
}
}  // namespace

// Constructor and destructor are defined here because a header that includes attempt.h alone does
// not know Node.
Attempt::Attempt() noexcept : outer_(current()) { current() = this; }
Attempt::~Attempt() {
  current() = outer_;
  if (!draws_.fails()) return;
  take_back_gradients();
  take_back_states();
  for (const auto& [set, take_back] : declarations_) take_back();
}

void Attempt::announce_gradient(const Ref<Node>& leaf) {
  for (Attempt* attempt = current(); attempt; attempt = attempt->outer_)
    attempt->gradients_.try_emplace(leaf.get(), Change{leaf, false, true});
}

// A leaf may be noted twice, with zero_grad() in between. A gradient made after that belongs to
// this attempt, even if there was one before.
void Attempt::note_gradient(const Ref<Node>& leaf, bool made) {
  for (Attempt* attempt = current(); attempt; attempt = attempt->outer_) {
    Change& change = attempt->gradients_.try_emplace(leaf.get(), Change{leaf, made}).first->second;
    change.made |= made;
    change.is_announced = false;
  }
}

void Attempt::note_update(const Ref<Storage>& state, const memory::Tag& by) {
  Ref<Storage> before;
  for (Attempt* attempt = current(); attempt; attempt = attempt->outer_) {
    if (attempt->states_.contains(state.get())) continue;
    if (!before) {
      before = make_ref<Storage>(state->device(),
                                 memory::Request{state->bytes(), memory::Category::temporary, by});
      copy_values(*state, *before);
    }
    attempt->states_.emplace(state.get(), Written{state, before, state->torn_by()});
  }
}

void Attempt::take_back_states() noexcept {
  for (const auto& [storage, written] : states_) {
    try {
      copy_values(*written.before, *written.state);
      written.state->mend();
      if (written.torn_by) written.state->tear(written.torn_by);
    } catch (const std::exception&) {
      written.state->tear("attempt");
    }
    written.state->bump_version();
  }
}

void Attempt::take_back_gradients() noexcept {
  for (const auto& [node, change] : gradients_) {
    Node::Extra& extra = *change.leaf->extra;
    if (!extra.tensor.defined()) continue;  // zero_grad() has been called since
    if (change.is_announced) continue;
    if (change.made) extra.tensor = Tensor();
    extra.partial = !change.made;
  }
}

}  // namespace ebb::detail
