// The operations that cuDNN plans, as it is told of them.
#pragma once
#include "ebb/core/kernels/attention.h"
#include "ebb/kernels/cuda/cudnn_plan.h"
#include "ebb/kernels/cuda/plans/conv_plan.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {

struct CudnnConvCase {
  ConvPass pass = ConvPass::forward;
  ConvLayout of;
  DType dtype = DType::f32;
  bool adds = false;  // to what the result's memory holds
  bool tf32 = false;
};
// Operands x, weights, y.
CudnnOperation describe(const CudnnConvCase& of);

// Without a mask; f16 or bf16. Operands q, k, v, y, in the host's memory the scale (f32), and where
// it is causal minus infinity (f32), then lse if it is kept. Since cuDNN 9.13, causal since 9.21.
CudnnOperation describe_attention(const AttentionLayout& of, DType dtype, bool causal,
                                  bool keeps_lse);

}  // namespace ebb::cuda

#endif
