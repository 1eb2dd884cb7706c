#pragma once
#include <cstdint>
#include <optional>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct Seed {
  std::uint64_t value = 0;
};

// Restarts the calling thread's generator, from which eager random operators draw and new sessions
// take their key: the same seed repeats the same program. Seeds are told apart by what they are
// given to, so that one seed for everything shares no number between two draws.
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

// While one is alive, the thread's generator is tried: it goes back to where it was unless what
// drew from it was done.
class GeneratorTrial {
 public:
  GeneratorTrial() noexcept : before_(generator()) {}
  ~GeneratorTrial() {
    if (!done_) generator() = before_;
  }
  GeneratorTrial(const GeneratorTrial&) = delete;
  GeneratorTrial& operator=(const GeneratorTrial&) = delete;

  void done() noexcept { done_ = true; }

 private:
  const Generator before_;
  bool done_ = false;
};

// The key under which a session's draws are made: of `seed`, or a new one, the generator's next.
std::uint64_t session_key(std::optional<Seed> seed) noexcept;
}  // namespace detail

}  // namespace ebb
