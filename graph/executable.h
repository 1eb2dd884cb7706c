#pragma once
#include <memory>
#include <vector>

#include "ebb/core/tensor/prepared_cache.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/arena.h"
#include "ebb/graph/program.h"
#include "ebb/graph/session.h"
#include "ebb/graph/variables.h"

namespace ebb::detail {

// A program with its addresses filled in. A run only adds the addresses of feeds and fetches and
// hands the kernels to the device.
class Executable {
 public:
  // Calls the prepare rules of kernels that have one; throws their errors.
  Executable(Program program, Runtime& runtime, Stream* stream, detail::PreparedCache& cache);

  const Program& program() const noexcept { return program_; }
  // Throws Error for a captured tensor on another device, a variable without value, and torn
  // memory. Cheap if already bound.
  void check(const SessionVariables& variables);
  // Fills in the addresses of the arena and of the variables; cheap if they have not changed.
  void bind(const Arena& arena, SessionVariables& variables);
  // Makes the next run bind again.
  void unbind() noexcept { bound_ = false; }
  // Replaces feeds by copies, which it returns, if the program updates their memory as a captured
  // tensor.
  Tensors copy_updated(std::span<const Tensor*> feeds) const;
  // Runs the program in the order of `stream`, in the arena that it is bound to; feeds and fetches
  // in the program's order. Throws Error if the device or a kernel fails; memory that may be half
  // written is torn then. On a simulated device nothing is computed.
  void run(Arena& arena, Stream* stream, std::span<const Tensor* const> feeds,
           const Tensors& fetches);

 private:
  struct Patch {
    std::uint32_t value;  // into buffers_
    std::uint32_t index;  // of the feed or fetch
    std::size_t offset;
  };
  void* address(const Location& location) const noexcept;
  void prepare(std::size_t step, Stream* stream, detail::PreparedCache& cache);
  void require_whole_captured();
  class UseOfAll;
  void fill_slots(Arena& arena, Stream* stream, std::span<const Tensor* const> feeds);
  void end_moves(Stream* stream, const char* cause) noexcept;
  bool is_captured(Stream* stream);
  Launched launch(Stream* stream);
  Launched launch_one_by_one(Stream* stream);
  // Finds the steps that come after an update and read indices that were there before the run.
  void find_given_indices();
  // Throws Error if an index of a step is out of range, after the first `touched` steps have run.
  void require_in_range(std::size_t step, std::size_t touched, Stream* stream);
  // Throws NotANumber if a step has written an unwanted value.
  void refuse_nan(std::size_t step, NanCheck check, Stream* stream);
  // Adds the line of the run to an error's text.
  std::string in_run(std::size_t step, std::string text) const;
  void tear(std::size_t touched);
  [[noreturn]] void fail(const Launched& launched, Stream* stream);

  Program program_;  // launches point to its steps; a move of the executable keeps them
  Runtime& runtime_;
  std::vector<Buffer> buffers_;          // parallel to program_.values
  std::vector<Launch> launches_;         // parallel to program_.steps
  std::vector<Ref<Prepared>> prepared_;  // of the steps with a prepare rule
  std::vector<Patch> feed_patches_, fetch_patches_;
  std::vector<std::size_t> given_indices_;  // steps whose indices are checked before the first step
  bool checks_indices_ = false;             // a step asks the host to check its indices
  std::byte *arena_ = nullptr, *host_ = nullptr;
  SessionVariables* variables_ = nullptr;
  std::uint64_t tears_ = 0;  // Storage::tears() when all captured memory was last found whole
  bool bound_ = false, poisons_ = false;
  // Captured for the bound addresses. The first run launches its kernels directly, because
  // libraries and kernels load what they need then. The second run is captured, and replayed from
  // then on.
  std::unique_ptr<Capture> capture_;
  const char* not_captured_ = nullptr;  // why capture is impossible, static text
  // Runs launch by launch, and the number of them after which a capture is tried.
  std::uint64_t runs_ = 0, next_capture_ = 1;
};

// Memory of a pool, of its arena, and of the programs that run in it.
memory::Breakdown breakdown_of(const memory::Pool& pool, const Arena& arena,
                               std::span<const Program* const> programs,
                               const memory::Profile& profile);

}  // namespace ebb::detail
