// Allocation, copies and fills.
#include <cstring>
#include <utility>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/memory/host_memory.h"

using namespace ebb::emulated;

namespace {

// Largest copy from pageable host memory that the driver stages, so that the host may overwrite its
// source at once.
constexpr std::size_t kStagedBytes = 64 << 10;

// One end of a copy: whether it lies on the device, and whether the copy may access it late.
struct End {
  bool on_device;
  bool late;
};
End end_of(const void* address, std::size_t bytes) {
  const bool on_device = address_space().holds(address);
  return {on_device, on_device || host_memory().is_pinned(address, bytes)};
}

bool fits(cudaMemcpyKind kind, const End& to, const End& from) {
  if (kind == cudaMemcpyDefault) return true;
  return to.on_device == (kind != cudaMemcpyDeviceToHost) &&
         from.on_device == (kind != cudaMemcpyHostToDevice);
}

bool is_usable(const void* address, std::size_t bytes) {
  return address && (!address_space().holds(address) || address_space().is_mapped(address, bytes));
}

Outcome copy_now(void* to, const void* from, std::size_t bytes) {
  if (Outcome bad = check_parts({{to, bytes, "what is written"}, {from, bytes, "what is read"}});
      !bad.ok())
    return bad;
  std::memmove(address_space().alias(to), address_space().alias(from), bytes);
  return {};
}

WorkPtr make_copy(void* to, const void* from, std::size_t bytes, std::string staged) {
  return std::make_shared<FunctionWork>("copy", [to, from, bytes, staged = std::move(staged)] {
    return copy_now(to, staged.empty() ? from : staged.data(), bytes);
  });
}

// Checks that both ends are usable and lie where the kind says.
cudaError_t check_copy(Machine& own, const void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind) {
  if (const cudaError_t wish = own.injected(Fault::copy); wish != cudaSuccess) return wish;
  if (!fits(kind, end_of(to, bytes), end_of(from, bytes))) return cudaErrorInvalidMemcpyDirection;
  return is_usable(to, bytes) && is_usable(from, bytes) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&](Machine&, Machine::Lock&) {
    if (!free || !total) return cudaErrorInvalidValue;
    const std::size_t used = address_space().used();
    *total = address_space().capacity();
    *free = *total > used ? *total - used : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!address) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::allocate); wish != cudaSuccess) return wish;
    *address = nullptr;
    if (bytes == 0) return cudaSuccess;
    std::uintptr_t at = 0;
    if (address_space().allocate(bytes, at) != AddressSpace::Answer::ok)
      return cudaErrorMemoryAllocation;
    *address = reinterpret_cast<void*>(at);
    return cudaSuccess;
  });
}

// Waits for nothing. Drivers do wait, but CUDA does not promise it.
cudaError_t cudaFree(void* address) {
  if (!address) return call([](Machine&, Machine::Lock&) { return cudaSuccess; });
  auto lock = machine().lock();
  if (check_driver(machine()) != cudaSuccess) return answer(check_driver(machine()));
  bool spoiled = false;
  if (address_space().free(reinterpret_cast<std::uintptr_t>(address), spoiled) !=
      AddressSpace::Answer::ok)
    return answer(cudaErrorInvalidValue);
  if (spoiled) {
    machine().complain("a block of cudaMalloc was written to behind its end");
    machine().lose({cudaErrorIllegalAddress, "written to behind the end of a block"});
  }
  return answer(machine().lost.code);
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!address) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::allocate_host); wish != cudaSuccess)
      return wish;
    *address = bytes ? host_memory().allocate(bytes) : nullptr;
    return *address || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaFreeHost(void* address) {
  if (!address) return call([](Machine&, Machine::Lock&) { return cudaSuccess; });
  auto lock = machine().lock();
  return answer(host_memory().free(address) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (bytes == 0 && own.is_stream(stream)) return cudaSuccess;
    if (const cudaError_t error = check_copy(own, to, from, bytes, kind); error != cudaSuccess)
      return error;
    const End target = end_of(to, bytes), source = end_of(from, bytes);
    const bool late = target.late && source.late;
    if (!late && own.is_stream(stream) && stream->capture) {
      stream->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    const bool staged = target.on_device && !source.late && bytes <= kStagedBytes;
    std::string aside = staged ? std::string(static_cast<const char*>(from), bytes) : "";
    const cudaError_t put = own.put(lock, stream, make_copy(to, from, bytes, std::move(aside)));
    if (put != cudaSuccess || late || staged) return put;
    own.run_until(lock, stream->queue, stream->queue->asked);
    return own.lost.code;
  });
}

// A plain fill is one row.
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemset2DAsync(to, bytes, value, bytes, 1, stream);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (width > pitch) return cudaErrorInvalidValue;
    if (width * height == 0 && own.is_stream(stream)) return cudaSuccess;
    const std::size_t bytes = (height - 1) * pitch + width;
    if (const cudaError_t wish = own.injected(Fault::fill); wish != cudaSuccess) return wish;
    if (!end_of(to, bytes).late || !is_usable(to, bytes)) return cudaErrorInvalidValue;
    const auto fill = [=]() -> Outcome {
      if (Outcome bad = check_parts({{to, bytes, "what is filled"}}); !bad.ok()) return bad;
      auto* const begin = static_cast<std::byte*>(address_space().alias(to));
      for (std::size_t row = 0; row < height; ++row) std::memset(begin + row * pitch, value, width);
      return {};
    };
    return own.put(lock, stream, std::make_shared<FunctionWork>("fill", fill));
  });
}
