// The kernels of pointwise operators of two inputs.
#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#define EBB_UNARY(name, Functor)
#define EBB_BINARY(name, Functor) template Status zip<functors::Functor>(const KernelContext&);
#define EBB_PAIR(name, Functor) template Status pair<functors::Functor>(const KernelContext&);
#include "ebb/core/kernels/functors/families.inc"
}  // namespace ebb::cuda
