// The streams of a device, for callers that must wait for all of them.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ebb::memory::cuda {

/// Memory may go back to a device only after all earlier work, and cuMemUnmap does not wait. Each
/// stream is waited for separately: a wait for the whole device would include work of others, and
/// is an error while a capture runs.
///
/// While a stream is captured, other threads must neither wait for it nor name it in an event: the
/// capture would fail, or include their streams. So a thread holds a stream while it captures it,
/// and while it waits for another thread's stream. Captures use cudaStreamCaptureModeRelaxed, in
/// which other threads may allocate and free meanwhile, and libraries may initialise themselves at
/// first use.
class LiveStreams {
 public:
  /// Registers a stream for its lifetime. The stream outlives it, and the device is current when it
  /// ends.
  class Member {
   public:
    Member(std::shared_ptr<LiveStreams> all, cudaStream_t stream);
    ~Member();

    /// Waits until nobody else holds the stream.
    std::unique_lock<std::mutex> hold() noexcept { return std::unique_lock(mutex_); }

    /// Counts work put into the stream, also a wait for another stream. Called by the stream's
    /// thread.
    void count_put() noexcept {
      puts_.store(puts_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    std::uint64_t puts() const noexcept { return puts_.load(std::memory_order_acquire); }

   private:
    friend class LiveStreams;
    const std::shared_ptr<LiveStreams> all_;
    const cudaStream_t stream_;
    std::mutex mutex_;
    std::atomic<std::uint64_t> puts_ = 0;
    std::uint64_t done_ = 0;  // value of puts_ at the last wait for the stream
  };

  /// Returns when all work in the streams is done, or with the first failure.
  cudaError_t wait_for_all() noexcept;

 private:
  std::mutex mutex_;  // guards members_; taken before theirs
  std::vector<Member*> members_;
};

}  // namespace ebb::memory::cuda
