#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/program.h"
#include "ebb/graph/variables.h"

namespace ebb::detail {

// A program whose addresses have been filled in: what is left for a run is to put in those of feeds
// and fetches and to hand the kernels to the device.
class Executable {
 public:
  // Prepares the kernels that have something to look up. Throws what that throws.
  Executable(Program program, Runtime& runtime, Stream* stream);

  const Program& program() const noexcept { return program_; }
  // Throws Error for a captured tensor on another device, a variable without value, and what a
  // failure has torn. Cheap where it is bound.
  void check(const SessionVariables& variables);
  // The arena's address and the variables'; cheap when they are the ones it has.
  void bind(std::byte* arena, SessionVariables& variables);
  // The next run has to bind again.
  void unbind() noexcept { bound_ = false; }
  // feeds and fetches as in the program, in the order of `stream`. Throws Error where the device or
  // a kernel fails; what may have been written in part is torn then. On a simulated device nothing
  // is computed.
  void run(Stream* stream, std::span<const Tensor* const> feeds, const Tensors& fetches);

 private:
  struct Patch {
    std::uint32_t value;  // into buffers_
    std::uint32_t index;  // of the feed or fetch
    std::size_t offset;
  };
  void* address(const Place& place) const noexcept;
  std::byte* fed_or_fetched(const Place& place, std::span<const Tensor* const> feeds,
                            const Tensors& fetches) const noexcept;
  void prepare(std::size_t step, Stream* stream);
  void require_whole_captured();
  class UseOfAll;
  bool is_captured(Stream* stream);
  Launched launch(Stream* stream);
  Launched launch_one_by_one(Stream* stream);
  // Notes the steps that read indices which were there before the run, behind an update.
  void find_given_indices();
  // Throws Error where an index of a step is out of range, after the first `touched` have run.
  void require_in_range(std::size_t step, std::size_t touched, Stream* stream);
  // Throws NotANumber where what a step has written is not wanted.
  void require_wanted(std::size_t step, Unwanted unwanted, Stream* stream);
  // An error's text with the line of the run.
  std::string in_run(std::size_t step, std::string text) const;
  void tear(std::size_t touched);
  [[noreturn]] void fail(const Launched& launched, Stream* stream);

  Program program_;  // launches refer to its steps, wherever the executable is moved
  Runtime& runtime_;
  std::vector<Buffer> buffers_;          // as program_.values
  std::vector<Launch> launches_;         // as program_.steps
  std::vector<Ref<Prepared>> prepared_;  // of the steps that have something
  std::vector<Patch> feed_patches_, fetch_patches_;
  std::vector<std::size_t> given_indices_;  // steps whose indices are looked at before the first
  bool checks_indices_ = false;             // a step has indices that the host looks at, by request
  std::byte* arena_ = nullptr;
  SessionVariables* variables_ = nullptr;
  std::uint64_t tears_ = 0;  // when last all that is captured was found whole
  bool bound_ = false, poisons_ = false;
  // Of the addresses that it is bound to. The first run is made of launches, in which libraries and
  // kernels load what they need; the second is captured, and replayed from then on.
  std::unique_ptr<Capture> capture_;
  const char* not_captured_ = nullptr;  // why it never will be, static text
  bool has_run_ = false;
};

}  // namespace ebb::detail
