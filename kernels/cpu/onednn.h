// What ebb's uses of oneDNN share. It needs EBB_HAVE_ONEDNN.
#pragma once
#include <oneapi/dnnl/dnnl.h>

namespace ebb::cpu {

// While it lives, oneDNN takes one thread for what is called from this one: it asks its OpenMP
// runtime how many it may take, and ebb cuts work itself. Afterwards that is as it was.
class OneThread {
 public:
  OneThread() noexcept;
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Whether oneDNN's kernels use AVX-512 here.
inline bool has_avx512_kernels() noexcept {
  static const bool has =
      (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  return has;
}

}  // namespace ebb::cpu
