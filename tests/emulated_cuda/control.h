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
  reserve,            // cuMemAddressReserve
  map,                // cuMemMap
  launch,             // of a kernel
  copy,               // cudaMemcpyAsync, cudaMemcpy
  fill,               // cudaMemsetAsync
  create_stream,      //
  create_event,       //
  end_capture,        //
  instantiate_graph,  //
  launch_graph,       //
  cublaslt,           // cublasLtMatmul
  cudnn,              // cudnnRNN...
  create_cudnn,       // cudnnCreate
  execute,            //
};
inline constexpr std::size_t kFaults = 16;

struct Statistics {
  std::uint64_t launches, graph_launches, library_calls;  // asked for
  std::uint64_t default_stream_uses;                      // each of them a mistake
  std::uint64_t synchronisations;                         // of streams, events and devices
  std::uint64_t waits;                                    // of streams for events, asked for
  std::uint64_t maps;                                     // of memory to reserved addresses
  std::uint64_t pending;                                  // pieces of work that wait
  std::uint64_t streams, events, graphs;                  // that exist
  std::uint64_t page_locked;                              // blocks of it
  std::uint64_t library_objects;  // handles and descriptors of cuBLASLt and cuDNN
  std::uint64_t bytes;            // of device 0 that are allocated
};

// Functions may be called from any thread.
struct Control {
  void (*set_seed)(std::uint64_t seed);
  void (*statistics)(Statistics* statistics);
  // The next `successes` such calls pass, and the one after fails with `code`, once. A negative
  // code cancels this.
  void (*inject)(Fault fault, std::size_t successes, int code);
  void (*set_capacity)(int device, std::size_t bytes);
  // Every call about the device returns `code` from now on. 0 revives the device, as good as new.
  void (*lose_device)(int device, int code);
  // The newest CUDA that the driver serves; 0: there is no driver.
  void (*set_driver)(int version);
  // Compute capability of all devices, and version of cuDNN. 0 restores the initial one.
  void (*set_capability)(int capability);
  void (*set_cudnn)(int version);
  void (*set_drops_waits)(bool drops);  // cudaStreamWaitEvent does nothing
  void (*set_at_once)(bool at_once);    // work is done when it is asked for
  // A stream with more waiting work than this does its oldest when it is given more.
  void (*set_most_waiting)(std::size_t work);
  // The calling thread's last error, as cudaGetLastError would return it.
  int (*last_error)();
  // Whether a host address lies in the range of device addresses.
  bool (*is_device_address)(const void* address);
  // Text of the last mistake found; empty if there was none. The string is static.
  const char* (*last_complaint)();
  void (*clear_complaint)();
};

}  // namespace ebb::emulated

extern "C" __attribute__((visibility("default"))) const ebb::emulated::Control*
ebb_emulated_control();
