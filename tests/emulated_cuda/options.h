// Options of the emulated machine, read once from the environment.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::emulated {

struct Options {
  std::uint64_t seed = 1;  // EBB_EMULATED_SEED
  // EBB_EMULATED_PAGE: page of virtual memory. NVIDIA's devices have 2 MiB. A smaller one, a
  // multiple of the host's pages, makes small tests give memory back.
  std::size_t page_bytes = std::size_t{2} << 20;
  int capability = 90;  // EBB_EMULATED_CAPABILITY
  int devices = 1;      // EBB_EMULATED_DEVICES, 0 or 1
  int driver = 13000;   // EBB_EMULATED_DRIVER; 0: there is none
  // EBB_EMULATED_WITHOUT: a barrier that no thread waits at, "scan.cu:127". For barriers.py.
  const char* without = nullptr;
};

const Options& options();

}  // namespace ebb::emulated
