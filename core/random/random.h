#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct Seed {
  std::uint64_t value = 0;
};

// Restarts the calling thread's generator. Eager random operators draw from it, and new sessions
// and loaders with .shuffle = true take their key from it: the same seed repeats the same program.
// A seed is hashed with its purpose, so one seed used for everything shares no numbers between two
// draws.
void set_seed(Seed seed) noexcept;

namespace detail {
// The calling thread's generator; a checkpoint saves it and recompute rewinds it.
struct Generator {
  std::uint64_t key = 0;
  std::uint64_t counter = 0;
};
Generator& generator() noexcept;

// A new draw, i64[2] {key, counter}: the generator's next on `device`, or in the graph of `like`
// (if that is symbolic) a node that draws anew in every run.
Tensor next_draw(const Tensor& like, CallSite site);
Tensor next_draw(const Device& device, CallSite site);

// Puts the thread's generator back at the end of a scope, which may draw from another state.
class GeneratorScope : NoCopy {
 public:
  explicit GeneratorScope(Generator state = generator()) noexcept
      : before_(std::exchange(generator(), state)) {}
  ~GeneratorScope() { generator() = before_; }

 private:
  const Generator before_;
};

// Puts the thread's generator back when an exception leaves the scope: code that failed has drawn
// nothing.
class GeneratorTrial : NoCopy {
 public:
  GeneratorTrial() noexcept : before_(generator()), exceptions_(std::uncaught_exceptions()) {}
  ~GeneratorTrial() {
    if (fails()) generator() = before_;
  }

  // In a destructor: whether an exception is leaving the scope.
  bool fails() const noexcept { return std::uncaught_exceptions() > exceptions_; }
  // Keeps all draws made so far, whatever happens later.
  void keep() noexcept { before_ = generator(); }

 private:
  Generator before_;
  const int exceptions_;
};

// Opened by a public function that works through others, and so may draw before it fails: its line
// for messages, and a GeneratorTrial.
class CallScope {
 public:
  explicit CallScope(CallSite site) noexcept : at_(site) {}

 private:
  const CallSiteScope at_;
  const GeneratorTrial trial_;
};

// The key of this process's draws, so that no two ranks of a job draw the same numbers. The
// generator itself is the same on every rank that ran the same lines, as is what it saves.
std::uint64_t by_rank(std::uint64_t key) noexcept;
// A new key from the generator, one step of its counter. Nothing else has it.
std::uint64_t next_key() noexcept;
// The key of a session's draws: derived from `seed`, or a new one.
std::uint64_t session_key(std::optional<Seed> seed) noexcept;
}  // namespace detail

}  // namespace ebb
