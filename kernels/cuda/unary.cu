// The kernels of pointwise operators of one input.
#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#define EBB_UNARY(name, Functor) template Status map<functors::Functor>(const KernelContext&);
#define EBB_BINARY(name, Functor)
#define EBB_PAIR(name, Functor)
#include "ebb/core/kernels/functors/families.inc"
}  // namespace ebb::cuda
