// What the environment says of the emulated machine, read once.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::emulated {

struct Options {
  std::uint64_t seed = 1;  // EBB_EMULATED_SEED
  // EBB_EMULATED_PAGE, of virtual memory: 2 MiB is what NVIDIA's devices have; less, a multiple of
  // the host's pages, lets small tests see what is given back.
  std::size_t page_bytes = std::size_t{2} << 20;
  int capability = 90;  // EBB_EMULATED_CAPABILITY
  int devices = 1;      // EBB_EMULATED_DEVICES
  int driver = 13000;   // EBB_EMULATED_DRIVER; 0: there is none
};

const Options& options();

}  // namespace ebb::emulated
