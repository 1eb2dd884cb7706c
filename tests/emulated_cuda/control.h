// How tests steer the emulated machine: what it does next, and what it has done.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::emulated {

// What can fail at a test's wish. `execute` is the next work that is done, not asked for: the
// device is lost.
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
  // The next `successes` such calls pass, the one after them answers `code`, once. A negative code
  // takes the wish back.
  void (*inject)(Fault fault, std::size_t successes, int code);
  void (*set_capacity)(int device, std::size_t bytes);
  // Every call about the device answers `code` from now on; 0: it is as good as new.
  void (*lose_device)(int device, int code);
  // The newest CUDA that the driver serves; 0: there is no driver.
  void (*set_driver)(int version);
  // The compute capability of all devices and the version of cuDNN; 0: what they began with.
  void (*set_capability)(int capability);
  void (*set_cudnn)(int version);
  void (*set_drops_waits)(bool drops);  // cudaStreamWaitEvent does nothing
  void (*set_at_once)(bool at_once);    // work is done when it is asked for
  // A stream that has more to do does its oldest when it is asked for more.
  void (*set_most_waiting)(std::size_t work);
  // What cudaGetLastError would answer to the calling thread.
  int (*last_error)();
  // Whether a host address lies where device memory does.
  bool (*is_device_address)(const void* address);
  // The last mistake that the emulation found, in words; empty where there is none. Static.
  const char* (*last_complaint)();
  void (*clear_complaint)();
};

}  // namespace ebb::emulated

extern "C" __attribute__((visibility("default"))) const ebb::emulated::Control*
ebb_emulated_control();
