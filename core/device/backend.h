// Seam 4: core's interface to a device. kernels/ defines a backend for each kind of device.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/profile.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Progress of a sequence of launches: all of them, or the first `count` if the next failed.
struct [[nodiscard]] Launched {
  Status status;
  std::size_t count = 0;  // launched, without the one that failed
};

// A sequence of launches that a device has recorded, to be run again as one. The prepared state,
// attributes and memory that they refer to must outlive it.
class Capture : NoCopy {
 public:
  virtual ~Capture() = default;
};

// Every operation on a device's memory, in the order of a stream. Addresses lie in memory from the
// device's memory source; zero bytes are legal everywhere, with any address. May be called from any
// thread, for one stream by one thread at a time.
//
// A failure that shows only later is returned by the next synchronise() or copy_out(), and by every
// call after it: the device is lost then.
class Backend : NoCopy {
 public:
  static constexpr std::size_t kAtOnce = std::size_t{64} << 10;

  virtual ~Backend() = default;

  // Whether the device's memory is the host's and work is done when the call returns. Such a device
  // makes no streams; null stands for all of them.
  virtual bool is_host() const noexcept = 0;

  // Throws Error if the device has no more streams.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  // Gives back memory that an idle stream holds for its copies, after its work.
  virtual void rest(Stream* /*stream*/) noexcept {}
  // Work put into `stream` from now on runs after all work already put into `other`.
  virtual Status wait(Stream* stream, Stream* other) noexcept = 0;
  // Returns when all work in `stream` is done.
  virtual Status synchronise(Stream* stream) noexcept = 0;

  // `from` is host memory and may be reused at once. A copy of more than kAtOnce bytes may wait for
  // all work in the stream.
  virtual Status copy_in(Stream* stream, void* to, const void* from,
                         std::size_t bytes) noexcept = 0;
  // `to` is host memory and holds the values when this returns.
  virtual Status copy_out(Stream* stream, void* to, const void* from,
                          std::size_t bytes) noexcept = 0;
  // Within the device; the two ranges do not overlap.
  virtual Status copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept = 0;
  virtual Status fill(Stream* stream, void* to, unsigned char value,
                      std::size_t bytes) noexcept = 0;
  // Runs the launches in order until one refuses or fails. Neighbours that share a merged kernel
  // may be launched together.
  virtual Launched run(Stream* stream, std::span<const Launch> launches) noexcept = 0;

  // Records the work of run() without doing it. Null if the device records nothing or one of the
  // launches cannot be recorded; `problem`, static text, says why.
  virtual std::unique_ptr<Capture> capture(Stream* /*stream*/, std::span<const Launch> /*launches*/,
                                           const char*& problem) noexcept {
    problem = "the device records no programs";
    return nullptr;
  }
  virtual Status replay(Stream* /*stream*/, Capture& /*capture*/) noexcept {
    return Status::refuse("the device replays no programs");
  }

  // copy_in() from page-locked memory of Runtime::staging(). Returns before the copy is done;
  // `from` must not change until wait_for_copies() has returned, or the stream has passed it.
  virtual Status copy_in_later(Stream* stream, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return copy_in(stream, to, from, bytes);
  }
  // Returns when all copies of copy_in_later() in the stream are done; later work may not be.
  virtual Status wait_for_copies(Stream* stream) noexcept { return synchronise(stream); }
};

namespace detail {
// Backend of the host, defined by kernels/cpu.
std::unique_ptr<Backend> make_cpu_backend();

// Parts of a CUDA device.
struct CudaDevice {
  memory::Profile profile;
  std::unique_ptr<memory::MemorySource> source;   // of device memory
  std::unique_ptr<memory::MemorySource> staging;  // of page-locked host memory
  std::unique_ptr<Backend> backend;
};
// Opens device `number`, from 0; defined by kernels/cuda. Throws Error with one line that says what
// is missing.
CudaDevice open_cuda(int number);
// Number of CUDA devices. 0 without ebb's CUDA part or a driver; -1 if both are there but no device
// can be used.
int count_cuda() noexcept;
}  // namespace detail

}  // namespace ebb
