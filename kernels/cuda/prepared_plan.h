// An operator as it is prepared: by a plan of a library, or by ebb's own kernel.
#pragma once
#include "ebb/core/kernels/device_kernel.h"

namespace ebb::cuda {

// By itself: ebb's own kernel.
class PreparedPlan : public Prepared {
 public:
  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by ebb's own kernel"; }
  // Computes it by a library, and sets the status. Returns false, having computed nothing that
  // ebb's kernel does not write, where the library's plan cannot be taken after all.
  virtual bool try_run(const KernelContext&, Status&) const noexcept { return false; }
};

// Whether a library has computed it, with `status` as its answer.
inline bool is_done(const KernelContext& context, Status& status) noexcept {
  return static_cast<const PreparedPlan*>(context.prepared)->try_run(context, status);
}

}  // namespace ebb::cuda
