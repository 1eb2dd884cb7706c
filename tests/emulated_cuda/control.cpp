#include "ebb/tests/emulated_cuda/control.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/memory/host_memory.h"
#include "ebb/tests/emulated_cuda/options.h"
#include "ebb/tests/emulated_cuda/outside.h"
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {
namespace {

template <class Function>
auto locked(const Function& function) {
  const auto lock = machine().lock();
  return function(machine());
}

constexpr Control kControl = {
    .set_seed = [](std::uint64_t seed) { locked([=](Machine& m) { m.random = Random(seed); }); },
    .statistics =
        [](Statistics* statistics) {
          locked([=](Machine& m) {
            *statistics = m.statistics;
            statistics->pending = m.pending();
            statistics->streams = m.streams.size();
            statistics->events = m.events.size();
            statistics->graphs = m.graphs.size() + m.execs.size();
            statistics->page_locked = host_memory().blocks();
            statistics->library_objects = m.library_objects;
            statistics->bytes = address_space().used();
          });
        },
    .inject =
        [](Fault fault, std::size_t successes, int code) {
          locked([=](Machine& m) {
            auto& wish = m.faults[static_cast<std::size_t>(fault)];
            wish.reset();
            if (code >= 0) wish = {successes, code};
          });
        },
    .set_capacity = [](std::size_t bytes) { address_space().set_capacity(bytes); },
    .lose_device =
        [](int code) {
          locked([=](Machine& m) {
            m.lost = {};
            if (code) m.lose({static_cast<cudaError_t>(code), "the device was taken away"});
          });
        },
    .set_driver = [](int version) { locked([=](Machine& m) { m.driver = version; }); },
    .set_capability =
        [](int capability) {
          machine().capability = capability ? capability : options().capability;
        },
    .set_cudnn = [](int version) { machine().cudnn = version ? version : Machine::kCudnn; },
    .set_drops_waits = [](bool drops) { locked([=](Machine& m) { m.drops_waits = drops; }); },
    .set_at_once = [](bool at_once) { locked([=](Machine& m) { m.at_once = at_once; }); },
    .last_error = [] { return static_cast<int>(last_error); },
    .last_complaint = []() -> const char* {
      static auto* const text = new std::string;
      return locked([](Machine& m) {
        *text = m.last_complaint;
        return text->c_str();
      });
    },
    .clear_complaint = [] { locked([](Machine& m) { m.last_complaint.clear(); }); },
};

// The emulated libraries are in the same file as the device. ebb then loads them from there.
[[gnu::constructor]] void name_libraries() {
  Dl_info info = {};
  if (!::dladdr(reinterpret_cast<const void*>(&name_libraries), &info) || !info.dli_fname) return;
  ::setenv("EBB_CUBLASLT_LIBRARY", info.dli_fname, 0);
  ::setenv("EBB_CUDNN_LIBRARY", info.dli_fname, 0);
  ::setenv("EBB_NVRTC_LIBRARY", info.dli_fname, 0);
  ::setenv("EBB_NCCL_LIBRARY", info.dli_fname, 0);
}

}  // namespace
}  // namespace ebb::emulated

const ebb::emulated::Control* ebb_emulated_control() { return &ebb::emulated::kControl; }

const ebb::emulated::Outside* ebb_emulated_outside() {
  static constexpr ebb::emulated::Outside outside = {
      &threadIdx,          &blockIdx,        &blockDim,           &gridDim,
      ebb_emulated_launch, cudaGetLastError, ebb_emulated_barrier};
  return &outside;
}
