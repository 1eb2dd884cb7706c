// Seam 4: what core knows of a device. kernels/ defines one for each kind of device.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "ebb/allocator/memory_source.h"
#include "ebb/allocator/profile.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// How far a row of launches came: all of them, or up to the one that answered `status`.
struct [[nodiscard]] Launched {
  Status status;
  std::size_t count = 0;  // that were launched, without the one that failed
};

// A row of launches that a device has recorded, to be run again as one. Prepared state, attributes
// and memory that they refer to outlive it.
class Capture {
 public:
  Capture() = default;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  virtual ~Capture() = default;
};

// All that is ever done to a device's memory, in the order of a stream. Addresses are those of the
// device's memory source, or inside of what it handed out; zero bytes are legal everywhere, with
// any address. May be called from any thread, for one stream by one thread at a time. A failure
// that shows only later is the answer of the next synchronise() or copy_out(), and of all that
// follow: the device is lost then.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // The device's memory is the host's, and what is asked for is done when the call returns. Streams
  // mean nothing there: they are not made, and null stands for all of them.
  virtual bool is_host() const noexcept = 0;

  // Throws Error where the device has no more.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  // What is put into `stream` from now on happens after all that has been put into `other`.
  virtual Status wait(Stream* stream, Stream* other) noexcept = 0;
  // Returns when all of `stream` has happened.
  virtual Status synchronise(Stream* stream) noexcept = 0;

  // `from` is the host's and may be used again at once.
  virtual Status copy_in(Stream* stream, void* to, const void* from,
                         std::size_t bytes) noexcept = 0;
  // `to` is the host's and has the values when this returns.
  virtual Status copy_out(Stream* stream, void* to, const void* from,
                          std::size_t bytes) noexcept = 0;
  // Within the device; the two do not overlap.
  virtual Status copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept = 0;
  virtual Status fill(Stream* stream, void* to, unsigned char value,
                      std::size_t bytes) noexcept = 0;
  // One after the other, until one refuses or fails. Those beside each other that have one merged
  // kernel may be launched together.
  virtual Launched run(Stream* stream, std::span<const Launch> launches) noexcept = 0;

  // Records what run() would do, and does none of it. Null where the device records nothing or one
  // of the launches cannot be recorded; `problem`, static text, then says why.
  virtual std::unique_ptr<Capture> capture(Stream* /*stream*/, std::span<const Launch> /*launches*/,
                                           const char*& problem) noexcept {
    problem = "the device records no programs";
    return nullptr;
  }
  virtual Status replay(Stream* /*stream*/, Capture& /*capture*/) noexcept {
    return Status::refuse("the device replays no programs");
  }

  // copy_in() of page-locked memory of Runtime::staging(): it returns before the copy has happened,
  // and `from` has to stay as it is until the stream has come past it.
  virtual Status copy_in_later(Stream* stream, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return copy_in(stream, to, from, bytes);
  }
};

namespace detail {
// The host: defined by kernels/cpu.
std::unique_ptr<Backend> make_cpu_backend();

// What a CUDA device consists of.
struct CudaDevice {
  memory::Profile profile;
  std::unique_ptr<memory::MemorySource> source;   // of its memory
  std::unique_ptr<memory::MemorySource> staging;  // of page-locked memory of the host
  std::unique_ptr<Backend> backend;
};
// Number n from 0, defined by kernels/cuda. Throws Error, in one line that says what is missing.
CudaDevice open_cuda(int number);
// How many there are; 0 without a part or a driver, -1 where what there is of them serves none.
int count_cuda() noexcept;
}  // namespace detail

}  // namespace ebb
