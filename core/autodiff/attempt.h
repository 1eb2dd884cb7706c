#pragma once
#include <functional>
#include <unordered_map>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/storage.h"

namespace ebb {

class Node;

namespace detail {

// Undo log of one attempt(). When an exception leaves its scope, the destructor takes back the
// changes noted on this thread.
class Attempt : NoCopy {
 public:
  Attempt() noexcept;
  ~Attempt();

  // Makes room for the note of a change that is still to come, which then cannot fail.
  static void announce_gradient(const Ref<Node>& leaf);
  // Notes that a backward pass has made the gradient of a leaf, or added to it.
  static void note_gradient(const Ref<Node>& leaf, bool made);
  // Whether an attempt is under way that has no take_back() for `set` yet.
  static bool has_to_note(const void* set) noexcept {
    for (const Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      if (!attempt->declarations_.contains(set)) return true;
    return false;
  }
  // Notes that the set of parameters `set` is about to declare or freeze parameters: take_back()
  // restores its present state.
  static void note_declaration(const void* set, const std::function<void()>& take_back) {
    for (Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      attempt->declarations_.try_emplace(set, take_back);
  }
  static bool is_under_way() noexcept { return current() != nullptr; }
  // Copies Parameters' state before an update of it, once in each attempt. Throws OutOfMemory.
  static void note_update(const Ref<Storage>& state, const memory::Tag& by);
  // A load or a session has written the state: its new values stay.
  static void keep(const Storage& state) noexcept {
    for (Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      attempt->states_.erase(&state);
  }
  // An optimizer begins to write: draws, declarations and state updates made for its step stay.
  static void keep() noexcept {
    for (Attempt* attempt = current(); attempt; attempt = attempt->outer_) {
      attempt->draws_.keep();
      attempt->declarations_.clear();
      attempt->states_.clear();
    }
  }

 private:
  static Attempt*& current() noexcept {
    thread_local constinit Attempt* innermost = nullptr;
    return innermost;
  }
  void take_back_gradients() noexcept;
  void take_back_states() noexcept;

  struct Written {
    Ref<Storage> state;
    Ref<Storage> before;
    const char* torn_by;  // before the update; null: it was whole
  };
  struct Change {
    Ref<Node> leaf;
    bool made;                  // there was no gradient before
    bool is_announced = false;  // and nothing has changed
  };
  Attempt* const outer_;
  GeneratorTrial draws_;
  std::unordered_map<const Node*, Change> gradients_;
  std::unordered_map<const void*, std::function<void()>> declarations_;
  std::unordered_map<const Storage*, Written> states_;
};

}  // namespace detail

// Calls step(), the lines of an eager training step, and returns its result. After a step that
// throws, the program can try again as if nothing had happened:
//
//   const auto step = [&](const Batch& batch) {
//     return adam.minimize(mse(model(batch.input), batch.target), params);
//   };
//   try {
//     loss = attempt([&] { return step(large); });
//   } catch (const OutOfMemory&) {
//     loss = attempt([&] { return step(small); });
//   }
//
// Each function undoes its own work when it fails, but only the program knows where a step begins.
// When an exception leaves attempt(),
//
// - the calling thread's generator goes back to where it was. The step made again draws the same
//   dropout masks and has the same loss. A tensor or a session made in the failed step and kept
//   shares its numbers;
// - gradients that backward() has made are free. Gradients it has added to are marked, as after a
//   backward() that fails: Optimizer::step and apply refuse them until zero_grad(). Values computed
//   from them are not marked;
// - state that the step has updated (running statistics of a BatchNorm, parameters it assigned to)
//   has its old values. The first update of each copies it until the attempt ends;
// - parameters declared in it are gone and their names free, so a model that does not fit leaves no
//   layers behind: attempt([&] { return Classifier(params); }). A graph's declarations stay.
//   set_trainable() is undone.
//
// A completed step of an optimizer or of a MovingAverage stays, with all draws, declarations and
// writes before it. Loads, runs of sessions and calls of compiled steps stay too: they need no
// attempt(), since one that fails changes nothing. Attempts nest.
template <class Step>
decltype(auto) attempt(Step&& step) {
  detail::Attempt scope;
  return std::forward<Step>(step)();
}

}  // namespace ebb
