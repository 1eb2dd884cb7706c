// A convolution's pass as it is prepared: by a plan of cuDNN, or by ebb's own kernel.
#pragma once
#include "ebb/kernels/cuda/plans/conv_plan.h"

namespace ebb::cuda {

// By itself: ebb's own kernel.
class PreparedConv : public Prepared {
 public:
  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by ebb's own kernel"; }
  // Computes the pass by a library, and sets the status. Returns false, having computed nothing,
  // where operands are not aligned to 16 bytes or the library refuses its plan after all.
  virtual bool try_run(const KernelContext&, Status&) const noexcept { return false; }
};

// cuDNN's first plan within query.workspace_bytes whose bits are the same every time, without
// timing; ebb's own kernel where there is none.
detail::Ref<Prepared> prepare_conv(ConvPass pass, const MemoryQuery& query);

}  // namespace ebb::cuda
