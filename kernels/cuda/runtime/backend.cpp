#include "ebb/kernels/cuda/runtime/backend.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "ebb/allocator/cuda/current_device.h"
#include "ebb/allocator/error.h"

namespace ebb::cuda {
namespace {

// Number of launches from the first on that one kernel call runs.
std::size_t count_merged(std::span<const Launch> launches) noexcept {
  std::size_t count = 1;
  if (const MergedKernel merged = launches[0].run_merged)
    while (count < launches.size() && launches[count].run_merged == merged) ++count;
  return count;
}

// Runs launches until a kernel fails, or after(its first launch) does. A failed merged kernel may
// have run all of its launches, unless it refuses.
template <class After>
Launched launch_all(std::span<const Launch> launches, const After& after) noexcept {
  for (std::size_t i = 0; i < launches.size();) {
    const Launch& first = launches[i];
    const std::size_t count = count_merged(launches.subspan(i));
    Status status =
        count > 1 ? first.run_merged(launches.subspan(i, count)) : first.run(first.context);
    if (status.ok()) status = after(first);
    if (!status.ok()) return {status, status.refused ? i : i + count - 1};
    i += count;
  }
  return {{}, launches.size()};
}

// A row of launches as a CUDA graph.
class GraphCapture final : public Capture {
 public:
  explicit GraphCapture(int device) noexcept : device_(device) {}
  ~GraphCapture() override {
    if (!graph_) return;
    static_cast<void>(memory::cuda::make_current(device_));
    if (cudaGraphExecDestroy(graph_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  // Starts recording: work put into the stream until end() is recorded, not run. The stream's
  // device must be current, and the caller holds the stream (LiveStreams) from begin() to end().
  // end() must follow in any case.
  static cudaError_t begin(cudaStream_t stream) noexcept {
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  }
  // Ends recording. Without `keeps` drops the recorded work. A failure leaves nothing behind.
  cudaError_t end(cudaStream_t stream, bool keeps) noexcept {
    cudaGraph_t recorded = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &recorded);
    if (error == cudaSuccess && keeps) error = cudaGraphInstantiate(&graph_, recorded, 0);
    if (error != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      graph_ = nullptr;
    }
    if (recorded) static_cast<void>(cudaGraphDestroy(recorded));
    return error;
  }

  cudaGraphExec_t get() const noexcept { return graph_; }

 private:
  const int device_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

CudaBackend::CudaBackend(int device, std::shared_ptr<memory::cuda::LiveStreams> streams,
                         bool checks)
    : common_(std::make_shared<Common>()), checks_(checks) {
  common_->device = device;
  common_->streams = std::move(streams);
}

Status CudaBackend::enter() noexcept {
  if (loss_.is_lost()) [[unlikely]]
    return loss_.status();
  const cudaError_t error = memory::cuda::make_current(common_->device);
  return error == cudaSuccess ? Status{} : refusal(error);
}

Status CudaBackend::explain(const Status& status, const CudaStream& stream) noexcept {
  if (loss_.is_lost()) return loss_.status();
  const cudaError_t now = cudaStreamQuery(stream.get());
  static_cast<void>(cudaGetLastError());  // pending work counts as an error there
  if (now == cudaSuccess || now == cudaErrorNotReady) return status;
  return loss_.lose(now, nullptr);
}

Status CudaBackend::answer(cudaError_t error, const CudaStream& stream) noexcept {
  if (error == cudaSuccess) [[likely]]
    return {};
  return explain(refusal(error), stream);
}

Status CudaBackend::finish(const CudaStream& stream, const char* name) noexcept {
  const cudaError_t error = cudaStreamSynchronize(stream.get());
  if (error != cudaSuccess) return loss_.lose(error, name);
  const char* const problem = common_->nccl_problem;  // what waited for it has no values
  return problem ? Status::fail(problem) : Status{};
}

std::unique_ptr<Stream> CudaBackend::make_stream() {
  if (const Status status = enter(); !status.ok())
    throw Error("cuda:" + std::to_string(common_->device) + ": " + status.problem);
  return std::make_unique<CudaStream>(common_);
}

void CudaBackend::rest(Stream* stream) noexcept {
  if (enter().ok()) cuda_stream(stream).rest();
}

// Records and waits under one hold, since another thread that waits for `other` records the same
// event. Skips the wait if this stream has already waited for all that is in `other`.
Status CudaBackend::wait(Stream* stream, Stream* other) noexcept {
  if (const Status status = enter(); !status.ok()) return status;
  if (stream == other) return {};
  CudaStream& waiting = cuda_stream(stream);
  CudaStream& awaited = cuda_stream(other);
  const auto turn = awaited.member().hold();
  if (awaited.was_awaited_by(waiting)) return {};
  const std::uint64_t puts = awaited.puts();
  if (const cudaError_t error = cudaEventRecord(awaited.event(), awaited.get());
      error != cudaSuccess)
    return answer(error, awaited);
  if (const cudaError_t error = cudaStreamWaitEvent(waiting.get(), awaited.event(), 0);
      error != cudaSuccess)
    return answer(error, waiting);
  awaited.note_wait_of(waiting, puts);
  waiting.count_put();
  return {};
}

Status CudaBackend::synchronise(Stream* stream) noexcept {
  if (const Status status = enter(); !status.ok()) return status;
  CudaStream& own = cuda_stream(stream);
  const cudaError_t error = own.copies().synchronise();
  return error == cudaSuccess ? finish(own, nullptr) : loss_.lose(error, nullptr);
}

// Device memory here may also be page-locked memory, which kernels reach: the driver finds out.
Status CudaBackend::put_copy(CudaStream& stream, void* to, const void* from,
                             std::size_t bytes) noexcept {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get());
  stream.count_put();
  return answer(error, stream);
}

Status CudaBackend::copy_in(Stream* stream, void* to, const void* from,
                            std::size_t bytes) noexcept {
  if (const Status status = enter(); !status.ok() || bytes == 0) return status;
  CudaStream& own = cuda_stream(stream);
  if (bytes <= BounceBuffer::kMostBytes) {
    std::byte* room = nullptr;
    if (const cudaError_t error = own.bounce_buffer().take(bytes, room); error != cudaSuccess)
      return answer(error, own);
    if (room) {
      std::memcpy(room, from, bytes);
      return put_copy(own, to, room, bytes);
    }
  }
  const Status status = put_copy(own, to, from, bytes);
  return status.ok() ? finish(own, nullptr) : status;
}

Status CudaBackend::copy_in_later(Stream* stream, void* to, const void* from,
                                  std::size_t bytes) noexcept {
  if (const Status status = enter(); !status.ok() || bytes == 0) return status;
  CudaStream& own = cuda_stream(stream);
  const Status status = put_copy(own, to, from, bytes);
  return status.ok() ? answer(own.note_copy(), own) : status;
}

Status CudaBackend::wait_for_copies(Stream* stream) noexcept {
  if (const Status status = enter(); !status.ok()) return status;
  const cudaError_t error = cuda_stream(stream).wait_for_copies();
  return error == cudaSuccess ? Status{} : loss_.lose(error, nullptr);
}

Status CudaBackend::copy_out(Stream* stream, void* to, const void* from,
                             std::size_t bytes) noexcept {
  if (const Status status = enter(); !status.ok() || bytes == 0) return status;
  CudaStream& own = cuda_stream(stream);
  const Status status = put_copy(own, to, from, bytes);
  return status.ok() ? finish(own, nullptr) : status;
}

Status CudaBackend::copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept {
  if (const Status status = enter(); !status.ok() || bytes == 0) return status;
  return put_copy(cuda_stream(stream), to, from, bytes);
}

Status CudaBackend::fill(Stream* stream, void* to, unsigned char value,
                         std::size_t bytes) noexcept {
  if (const Status status = enter(); !status.ok() || bytes == 0) return status;
  CudaStream& own = cuda_stream(stream);
  const cudaError_t error = cudaMemsetAsync(to, value, bytes, own.get());
  own.count_put();
  return answer(error, own);
}

Launched CudaBackend::run(Stream* stream, std::span<const Launch> launches) noexcept {
  if (const Status status = enter(); !status.ok()) return {status, 0};
  CudaStream& own = cuda_stream(stream);
  const auto check = [&](const Launch& launch) {
    return checks_ ? finish(own, launch.name) : Status{};
  };
  Launched launched = launch_all(launches, check);
  own.count_put();
  if (!launched.status.ok()) launched.status = explain(launched.status, own);
  return launched;
}

std::unique_ptr<Capture> CudaBackend::capture(Stream* stream, std::span<const Launch> launches,
                                              const char*& problem) noexcept {
  const auto refuse = [&](const Status& status) {
    problem = status.problem;
    return nullptr;
  };
  if (checks_)
    return refuse(Status::refuse("EBB_CUDA_CHECK waits for each launch, which no capture can do"));
  if (const Status status = enter(); !status.ok()) return refuse(status);
  std::unique_ptr<GraphCapture> capture(new (std::nothrow) GraphCapture(common_->device));
  if (!capture) return refuse(Status::refuse("the host has no memory left for a capture"));
  CudaStream& own = cuda_stream(stream);
  const auto turn = own.member().hold();
  if (const Status status = answer(GraphCapture::begin(own.get()), own); !status.ok())
    return refuse(status);
  const Launched launched = launch_all(launches, [](const Launch&) { return Status{}; });
  const Status ended = answer(capture->end(own.get(), launched.status.ok()), own);
  if (!launched.status.ok()) return refuse(launched.status);
  if (!ended.ok()) return refuse(ended);
  return capture;
}

Status CudaBackend::replay(Stream* stream, Capture& capture) noexcept {
  if (const Status status = enter(); !status.ok()) return status;
  CudaStream& own = cuda_stream(stream);
  const cudaError_t error = cudaGraphLaunch(static_cast<GraphCapture&>(capture).get(), own.get());
  own.count_put();
  return answer(error, own);
}

}  // namespace ebb::cuda
