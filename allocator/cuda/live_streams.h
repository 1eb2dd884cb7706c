// The streams of a device, known to whoever has to wait for all of them.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ebb::memory::cuda {

/// Memory goes back to a device only after all work that was asked for before, and cuMemUnmap waits
/// for none. Each stream is waited for by itself: a wait for the whole device would include what
/// others do there, and is an error while anything is captured.
///
/// A stream that is captured may be neither waited for nor named in an event by other threads: its
/// capture would fail, or swallow their streams. So who captures holds the stream, and so does
/// whoever waits for one that is not his. Captures are made in relaxed mode (CUDA's
/// cudaStreamCaptureModeRelaxed): nothing that any thread allocates or gives back meanwhile is
/// illegal then, nor what a library looks up when it is first used.
class LiveStreams {
 public:
  /// One of them, while this object lives. The device is still to be current when it ends.
  class Member {
   public:
    Member(std::shared_ptr<LiveStreams> all, cudaStream_t stream);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    /// Waits until nobody else holds the stream.
    std::unique_lock<std::mutex> hold() noexcept { return std::unique_lock(mutex_); }

    /// After something was put into the stream, a wait for another one included; by its thread.
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
    std::uint64_t done_ = 0;  // of those, when the stream was last waited for
  };

  /// Returns when all that the streams were asked for is done: with the failure of the first that
  /// does not come to that.
  cudaError_t wait_for_all() noexcept;

 private:
  std::mutex mutex_;  // of `members_`; comes before theirs
  std::vector<Member*> members_;
};

}  // namespace ebb::memory::cuda
