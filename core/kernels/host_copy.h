// Kernels that copy to and from page-locked memory of the host, beside the work of their stream:
// begin_host_copy copies input 0 to output 0, and what follows end_host_copy finds it done.
#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct HostCopyAttributes {
  std::uint32_t number = 0;  // of the copy in its program
  std::uint32_t is_out = 0;  // whether it goes to the host
};

}  // namespace ebb
