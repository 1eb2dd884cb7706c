// Messages between GPUs of several ranks, by NCCL.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "ebb/core/kernels/collective.h"
#include "ebb/kernels/cuda/runtime/stream.h"

#if EBB_HAS_NCCL
namespace ebb::cuda {

// A world's communicator on a device. Calls return at once and their failures come later: a thread
// looks for them and cuts the link, so that nothing waits for ranks that are gone.
class NcclLink final : public DeviceLink {
 public:
  // The link of `world` on the stream's device, opened by the first call. All ranks call it at the
  // same point.
  static Status of(Communicator& world, const CudaStream& stream, NcclLink*& link) noexcept;
  explicit NcclLink(std::shared_ptr<Common> common);
  ~NcclLink() override;

  void cut() noexcept override;
  // Puts calls(functions, communicator, stream), as one group, behind the work in `after`. The end
  // of a group returns the errors of its calls.
  template <class Calls>
  Status put(CudaStream& after, const Calls& calls) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!communicator_) return Status::refuse("NCCL has failed before");
      if (const Status status = follow(*stream_, after); !status.ok()) return status;
      nccl()->ncclGroupStart();
      calls(*nccl(), communicator_, stream_->get());
      result_ = nccl()->ncclGroupEnd();
    }
    return settle();
  }
  // Work put into `stream` from now on runs after what the device's links have been given.
  Status join(CudaStream& stream) noexcept { return follow(stream, *stream_); }

 private:
  using Clock = std::chrono::steady_clock;

  Status open(Communicator& world);
  bool is_idle() const noexcept;
  bool wait_until(Clock::time_point end) noexcept;
  void give_up(const char* problem) noexcept;
  static Status follow(CudaStream& later, CudaStream& earlier) noexcept;
  // Waits until NCCL is done with the latest call.
  Status settle() noexcept;
  bool is_settled() noexcept;

  const std::shared_ptr<Common> common_;
  std::shared_ptr<CudaStream> stream_;
  std::mutex mutex_;  // guards the two below
  ncclComm_t communicator_ = nullptr;
  ncclResult_t result_ = ncclSuccess;  // of the latest call
  std::jthread watch_;
};

}  // namespace ebb::cuda
#endif
