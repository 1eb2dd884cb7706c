#pragma once
#include <vector>

#include "ebb/graph/program.h"
#include "ebb/graph/variables.h"

namespace ebb::detail {

// A program whose addresses have been filled in: what is left for a run is to put in those of feeds
// and fetches and to call the kernels.
class Executable {
 public:
  explicit Executable(Program program);

  const Program& program() const noexcept { return program_; }
  // The arena's address and the variables'; cheap when they are the ones it has. Throws Error for a
  // captured tensor on another device, or a variable without value.
  void bind(std::byte* arena, const SessionVariables& variables, const Device& device);
  // The next run has to bind again.
  void unbind() noexcept { bound_ = false; }
  // feeds and fetches as in the program. On a simulated device nothing is computed.
  void run(std::span<void* const> feeds, std::span<void* const> fetches);

 private:
  struct Patch {
    std::uint32_t value;  // into buffers_
    std::uint32_t index;  // of the feed or fetch
    std::size_t offset;
  };
  void* address(const Place& place) const noexcept;

  const Program program_;
  std::vector<Buffer> buffers_;  // as program_.values
  std::vector<Patch> feed_patches_, fetch_patches_;
  std::byte* arena_ = nullptr;
  const SessionVariables* variables_ = nullptr;
  bool bound_ = false, simulated_ = false, poisons_ = false;
};

}  // namespace ebb::detail
