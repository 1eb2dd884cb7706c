#pragma once
#include <memory>

#include "ebb/core/device/backend.h"
#include "ebb/kernels/cuda/runtime/failure.h"
#include "ebb/kernels/cuda/runtime/stream.h"

namespace ebb::cuda {

// A CUDA device. A failing status names CUDA's error. If work fails after its launch, the device is
// lost.
class CudaBackend final : public Backend {
 public:
  // With `checks` waits for each launch, so that a failure names its operator, and captures
  // nothing.
  CudaBackend(int device, std::shared_ptr<memory::cuda::LiveStreams> streams, bool checks);

  bool is_host() const noexcept override { return false; }
  std::unique_ptr<Stream> make_stream() override;
  void rest(Stream* stream) noexcept override;
  Status wait(Stream* stream, Stream* other) noexcept override;
  Status synchronise(Stream* stream) noexcept override;
  Status copy_in(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status copy_in_later(Stream* stream, void* to, const void* from,
                       std::size_t bytes) noexcept override;
  Status wait_for_copies(Stream* stream) noexcept override;
  Status copy_out(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override;
  Status fill(Stream* stream, void* to, unsigned char value, std::size_t bytes) noexcept override;
  Launched run(Stream* stream, std::span<const Launch> launches) noexcept override;
  std::unique_ptr<Capture> capture(Stream* stream, std::span<const Launch> launches,
                                   const char*& problem) noexcept override;
  Status replay(Stream* stream, Capture& capture) noexcept override;

 private:
  // Called first: makes the device current, or returns its loss.
  Status enter() noexcept;
  // Status of a call that puts work into a stream: a refusal, or the device's loss if the stream
  // shows it.
  Status answer(cudaError_t error, const CudaStream& stream) noexcept;
  Status explain(const Status& status, const CudaStream& stream) noexcept;
  Status put_copy(CudaStream& stream, void* to, const void* from, std::size_t bytes) noexcept;
  Status finish(const CudaStream& stream, const char* name) noexcept;

  const std::shared_ptr<Common> common_;
  const bool checks_;
  Loss loss_;
};

}  // namespace ebb::cuda
