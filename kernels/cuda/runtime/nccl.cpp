#include "ebb/kernels/cuda/runtime/nccl.h"

#if EBB_HAS_NCCL
#include <chrono>
#include <exception>

#include "ebb/allocator/cuda/current_device.h"
#include "ebb/kernels/cuda/runtime/failure.h"

namespace ebb::cuda {

Status NcclLink::of(Communicator& world, const CudaStream& stream, NcclLink*& link) noexcept {
  try {
    std::unique_ptr<DeviceLink>& kept = world.link(stream.common().get());
    if (!kept) {
      auto made = std::make_unique<NcclLink>(stream.common());
      if (const Status status = made->open(world); !status.ok()) return status;
      kept = std::move(made);
    }
    link = static_cast<NcclLink*>(kept.get());
    return {};
  } catch (const std::exception&) {
    return Status::refuse("there is no memory, stream or thread for NCCL");
  }
}

NcclLink::NcclLink(std::shared_ptr<Common> common) : common_(std::move(common)) {
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  stream_ = common_->nccl.lock();
  if (!stream_) common_->nccl = stream_ = std::make_shared<CudaStream>(common_);
}

NcclLink::~NcclLink() {
  static_cast<void>(memory::cuda::make_current(common_->device));
  wait_until(Clock::time_point::max());  // while the watch cuts off what fails
  watch_ = {};
  if (!communicator_) return;
  static_cast<void>(common_->nccl_problem ? nccl()->ncclCommAbort(communicator_)
                                          : nccl()->ncclCommDestroy(communicator_));
}

Status NcclLink::open(Communicator& world) {
  if (const char* const problem = common_->nccl_problem) {
    if (world.made_at() < common_->nccl_failed_at.load()) return Status::refuse(problem);
    common_->nccl_problem = nullptr;  // the program begins anew
  }
  ncclUniqueId id = {};
  if (world.rank() == 0) result_ = nccl()->ncclGetUniqueId(&id);
  if (const Status status = settle(); !status.ok()) return status;
  // Gives the ranks rank 0's identity. The second time they hear that all have begun: NCCL would
  // wait for a rank that could not.
  const auto share = [&](const char* name) {
    return world.run({.kind = Collective::broadcast,
                      .spec = {DType::u8, {sizeof(id)}},
                      .sum_dtype = DType::u8,
                      .name = name,
                      .is_counted = false,
                      .to = &id});
  };
  if (const Status status = share("NCCL's identity"); !status.ok()) return status;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  result_ = nccl()->ncclCommInitRankConfig(&communicator_, world.size(), id, world.rank(), &config);
  if (result_ != ncclSuccess && result_ != ncclInProgress) return settle();
  if (const Status status = share("NCCL's beginning"); !status.ok()) {
    cut();
    return status;
  }
  watch_ = std::jthread([this](const std::stop_token& stop) {
    static_cast<void>(memory::cuda::make_current(common_->device));
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::lock_guard lock(mutex_);
      static_cast<void>(is_settled());
    }
  });
  return settle();
}

void NcclLink::cut() noexcept {
  static_cast<void>(memory::cuda::make_current(common_->device));
  const bool is_done = wait_until(Clock::now() + std::chrono::seconds(5));
  const std::lock_guard lock(mutex_);
  if (!is_done) give_up("NCCL was given up for a rank that has left");
  if (communicator_) static_cast<void>(nccl()->ncclCommAbort(communicator_));
  communicator_ = nullptr;
}

bool NcclLink::is_idle() const noexcept {
  const cudaError_t state = cudaStreamQuery(stream_->get());
  static_cast<void>(cudaGetLastError());  // pending work counts as an error there
  return state != cudaErrorNotReady;
}

// Waits for the stream's work until then, or until NCCL fails.
bool NcclLink::wait_until(Clock::time_point end) noexcept {
  while (!is_idle()) {
    if (Clock::now() > end || common_->nccl_problem) return false;
    std::this_thread::yield();
  }
  return true;
}

// What waits for NCCL on this device has no values.
void NcclLink::give_up(const char* problem) noexcept {
  common_->nccl_failed_at = Clock::now();
  common_->nccl_problem = problem;
}

Status NcclLink::follow(CudaStream& later, CudaStream& earlier) noexcept {
  const auto turn = earlier.member().hold();
  cudaError_t error = cudaEventRecord(earlier.event(), earlier.get());
  if (error == cudaSuccess) error = cudaStreamWaitEvent(later.get(), earlier.event(), 0);
  return error == cudaSuccess ? Status{} : refusal(error);
}

Status NcclLink::settle() noexcept {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_settled())
        return result_ == ncclSuccess ? Status{}
                                      : Status::fail(nccl()->ncclGetErrorString(result_));
    }
    std::this_thread::yield();
  }
}

// With the mutex.
bool NcclLink::is_settled() noexcept {
  if (communicator_ && (result_ == ncclSuccess || result_ == ncclInProgress)) {
    const ncclResult_t asked = nccl()->ncclCommGetAsyncError(communicator_, &result_);
    if (asked != ncclSuccess) result_ = asked;
  }
  if (result_ == ncclInProgress || result_ == ncclSuccess) return result_ == ncclSuccess;
  if (!is_idle()) give_up(nccl()->ncclGetErrorString(result_));
  if (communicator_) static_cast<void>(nccl()->ncclCommAbort(communicator_));
  communicator_ = nullptr;
  return true;
}

}  // namespace ebb::cuda
#endif
