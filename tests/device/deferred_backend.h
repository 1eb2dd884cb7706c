// A device made for the tests: what is asked of it happens later.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ebb/core/device/backend.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/tests/device/deferred_source.h"

namespace ebb::tests {

// The environment's EBB_DEFERRED_SEED, else 1.
std::uint64_t deferred_seed() noexcept;

// Runs the host's kernels on memory that the host cannot touch (DeferredMemory), and none of its
// work when it is asked for: synchronise() and copy_out() do it, on the calling thread, mixed at
// random with a part of what other streams have to do, in any order that streams and waits allow.
// So whoever reads too early, forgets a wait, or keeps what was to be read alive too briefly gets a
// wrong result for some seed, if not for every one.
//
// Each address is looked up among the live segments when work is asked for, and again when it is
// done; one that is wild or dead is a failure that names the work. A failure that comes when work
// is done loses the device: what waits is dropped, and every answer is that failure from then on.
class DeferredBackend final : public Backend {
 public:
  enum class Work { copy_in, copy_out, copy, fill, launch };
  enum class Fault {
    refused,  // at once, nothing was written
    failed,   // at once, but the work may come to pass
    later,    // when the work is done: the device is lost
  };
  // What happened, in the order in which it did.
  struct Ran {
    std::size_t stream = 0;  // streams count from 1, as they were made
    Work work = Work::launch;
    std::string name;         // of a launch; else that of the work
    std::uint64_t asked = 0;  // as which of its stream, waits included, from 0
  };

  explicit DeferredBackend(std::shared_ptr<DeferredMemory> memory,
                           std::uint64_t seed = deferred_seed());
  // What waits is dropped.
  ~DeferredBackend() override;

  bool is_host() const noexcept override { return false; }
  std::unique_ptr<Stream> make_stream() override;
  Status wait(Stream* stream, Stream* other) noexcept override;
  Status synchronise(Stream* stream) noexcept override;
  Status copy_in(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status copy_out(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status fill(Stream* stream, void* to, unsigned char value, std::size_t bytes) noexcept override;
  Launched run(Stream* stream, std::span<const Launch> launches) noexcept override;

  // All streams' work, in a random order. unmap() does this first.
  Status synchronise_all() noexcept;
  // Work that was asked for and not done yet, of all streams.
  std::size_t waiting() const;

  void set_seed(std::uint64_t seed);
  // Work is done when it is asked for, and what its kernel answers is the answer; no device is lost
  // for that. Tells whether a mistake has to do with order. Gives what there was before.
  bool set_at_once(bool at_once);
  // Waits are not kept: what needed one has to show then.
  void set_drops_waits(bool drops);
  // Whether work that shares memory with another stream's, and is in no order with it, fails when
  // it is asked for, whatever order would come to pass (DeferredOrder): on unless a test says not.
  // What a kernel writes in place beside its first output counts as read.
  void set_checks_order(bool checks);
  // A stream that has more to do does its oldest when it is asked for more.
  void set_most_waiting(std::size_t work);
  // The next `successes` pieces of such work pass, the one after them does not, once.
  void inject(Work work, Fault fault, std::size_t successes = 0);
  // A lost device is as good as new, and no failure is asked for any more.
  void restore();
  // From now on, what was kept so far forgotten.
  void keep_log(bool keep);
  std::vector<Ran> log() const;

 private:
  struct State;
  class DeferredStream;
  const std::shared_ptr<State> state_;  // its streams may outlive it
};

const char* name(DeferredBackend::Work work) noexcept;

}  // namespace ebb::tests
