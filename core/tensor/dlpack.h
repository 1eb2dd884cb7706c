// Tensors of other libraries (NumPy, PyTorch, JAX, TensorFlow) and for them, by DLPack: without a
// copy.
#pragma once
#include "ebb/core/tensor/tensor.h"

struct DLManagedTensor;  // these two are defined by DLPack's own header, dlpack.h
struct DLManagedTensorVersioned;

namespace ebb {

// A tensor for another library. Its memory stays, and counts as allocated, until the receiver calls
// the deleter. The values are there when this returns; on a GPU the receiver's work on them must be
// done when it calls the deleter. What it writes is seen here, but not noticed by
// backward(). Throws Error for a tensor without values, SimulatedRead for a simulated one.
DLManagedTensorVersioned* to_dlpack(const Tensor& x, CallSite site = CallSite::here());
// The structure from before DLPack 1.0, which is all that JAX and TensorFlow take, and which NumPy
// never writes to. Throws Error, too, for memory that its lender made read-only: it cannot say so.
DLManagedTensor* to_dlpack_unversioned(const Tensor& x, CallSite site = CallSite::here());

struct FromDlpackOptions {
  bool copy = false;  // copy the values to memory of ebb's own, and give theirs back at once
};

// A tensor in the memory of another library, on the CPU or a GPU. Takes ownership: the deleter is
// called once, when the last tensor that shares the memory goes or when this throws, by whichever
// thread that happens on. Updates in place write to that memory; of a read-only one they are
// Errors. No allocator counts it: summary(device) has it as borrowed. On a GPU, work on the values
// must be done before the call.
//
// Two tensors from one memory are two to ebb: an update of one is not known to change the other.
//
// Throws Error for another device or dtype, and unless values are contiguous, row-major and aligned
// to their size; with `copy` any strides and addresses will do.
Tensor from_dlpack(DLManagedTensor* theirs, FromDlpackOptions options = {},
                   CallSite site = CallSite::here());
Tensor from_dlpack(DLManagedTensorVersioned* theirs, FromDlpackOptions options = {},
                   CallSite site = CallSite::here());

}  // namespace ebb
