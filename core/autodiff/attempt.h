#pragma once
#include <functional>
#include <unordered_map>

#include "ebb/core/base/reference.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/storage.h"

namespace ebb {

class Node;

namespace detail {

// While one is alive on a thread, what an exception that leaves its scope takes back: see
// attempt().
class Attempt {
 public:
  Attempt() noexcept;
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // A backward pass has added to the gradient of a leaf, or made it.
  static void note_gradient(const Ref<Node>& leaf, bool made) {
    for (Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      attempt->note(leaf, made);
  }
  // Whether an attempt is under way that has yet to be told how to take back what `set` becomes.
  static bool has_to_note(const void* set) noexcept {
    for (const Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      if (!attempt->declarations_.contains(set)) return true;
    return false;
  }
  // A set of parameters begins to declare one, or to freeze some: take_back() makes it what it is
  // now.
  static void note_declaration(const void* set, const std::function<void()>& take_back) {
    for (Attempt* attempt = current(); attempt; attempt = attempt->outer_)
      attempt->declarations_.try_emplace(set, take_back);
  }
  static bool is_under_way() noexcept { return current() != nullptr; }
  // Parameters' state is about to be updated: what it holds is copied, once in each attempt. Throws
  // OutOfMemory.
  static void note_update(const Ref<Storage>& state, const memory::Tag& by);
  // An optimizer begins to write: what was drawn, declared and written for its step stays.
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
  void note(const Ref<Node>& leaf, bool made);
  void take_back_gradients() noexcept;
  void take_back_states() noexcept;

  struct Written {
    Ref<Storage> state;
    Ref<Storage> before;
    bool was_whole;
  };
  struct Change {
    Ref<Node> leaf;
    bool made;  // there was no gradient before
  };
  Attempt* const outer_;
  GeneratorTrial draws_;
  std::unordered_map<const Node*, Change> gradients_;
  std::unordered_map<const void*, std::function<void()>> declarations_;
  std::unordered_map<const Storage*, Written> states_;
};

}  // namespace detail

// Calls step(), the lines of an eager training step, and returns what it returns. A step that
// throws can be made again as though it had not been tried:
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
// Each function undoes what it did before it failed, but only the program knows where its step
// began. When an exception leaves attempt(),
//
// - the calling thread draws at random from where it drew before: the step made again has the
//   dropout of the one that failed, and so its loss. Who keeps what was drawn in a step that failed
//   (a tensor, a session and its key) meets those numbers again;
// - gradients that backward() has made are free, and those that it has added to are marked, as
//   after a backward() that fails: Optimizer::step and apply refuse them until zero_grad(). What
//   was computed from them is not marked;
// - state that the step has updated (the running statistics of a BatchNorm, what it assigned to
//   parameters) holds what it held: the first update of each copies it, until the attempt ends;
// - parameters that were declared are gone, and their names free. So a model of several layers that
//   does not fit leaves nothing: attempt([&] { return Classifier(params); }). A graph's stay. What
//   set_trainable() has frozen or thawed is as it was.
//
// The step of an optimizer or of a MovingAverage that was made stays made, and what was drawn,
// declared, frozen and written before it stays. So do what was loaded and the runs of sessions,
// which need no attempt(): one that fails has not happened. Attempts nest.
template <class Step>
decltype(auto) attempt(Step&& step) {
  detail::Attempt scope;
  return std::forward<Step>(step)();
}

}  // namespace ebb
