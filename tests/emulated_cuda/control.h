// Control of the emulated machine by tests: failures on request, limits, statistics.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::emulated {

// Calls that can fail at a test's wish. `execute` fails the next work when it is done, not when it
// is asked for: the device is lost.
enum class Fault : int {
  allocate,           // cudaMalloc, cuMemCreate
  allocate_host,      // cudaHostAlloc
  map,                // cuMemMap
  launch,             // of a kernel
  copy,               // cudaMemcpyAsync, cudaMemcpy
  fill,               // cudaMemsetAsync
  create_stream,      //
  create_event,       //
  instantiate_graph,  //
  launch_graph,       //
  cublaslt,           // cublasLtMatmul
  cudnn,              // cudnnRNN..., cudnnBackendExecute
  create_cudnn,       // cudnnCreate
  create_cublaslt,    // cublasLtCreate
  execute,            //
  compile,            // nvrtcCompileProgram
  nccl,               // ncclGroupEnd
  nccl_later,         // an operation of NCCL, which never ends
  nccl_stuck,         // likewise, and nobody hears of it
};
inline constexpr std::size_t kFaults = 19;

struct Statistics {
  std::uint64_t launches, graph_launches, library_calls;  // asked for
  std::uint64_t synchronisations;                         // of streams, events and devices
  std::uint64_t waits;                                    // of streams for events, asked for
  std::uint64_t maps;                                     // of memory to reserved addresses
  std::uint64_t pending;                                  // pieces of work that wait
  std::uint64_t streams, events, graphs;                  // that exist
  std::uint64_t page_locked;                              // blocks of it
  std::uint64_t library_objects;  // handles and descriptors of cuBLASLt, cuDNN and NCCL
  std::uint64_t bytes;            // allocated on the device
};

// Functions may be called from any thread.
struct Control {
  void (*set_seed)(std::uint64_t seed);
  void (*statistics)(Statistics* statistics);
  // The next `successes` such calls pass, and the one after fails with `code`, once. A negative
  // code cancels this.
  void (*inject)(Fault fault, std::size_t successes, int code);
  void (*set_capacity)(std::size_t bytes);
  // Every call returns `code` from now on. 0 revives the device, as good as new.
  void (*lose_device)(int code);
  // The newest CUDA that the driver serves; 0: there is no driver.
  void (*set_driver)(int version);
  // Compute capability, and version of cuDNN. 0 restores the initial one.
  void (*set_capability)(int capability);
  void (*set_cudnn)(int version);
  void (*set_drops_waits)(bool drops);  // cudaStreamWaitEvent does nothing
  void (*set_at_once)(bool at_once);    // work is done when it is asked for
  // The calling thread's last error, as cudaGetLastError would return it.
  int (*last_error)();
  // Text of the last mistake found; empty if there was none. The string is static.
  const char* (*last_complaint)();
  void (*clear_complaint)();
};

}  // namespace ebb::emulated

extern "C" __attribute__((visibility("default"))) const ebb::emulated::Control*
ebb_emulated_control();
