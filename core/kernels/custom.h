#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Inputs of a pointwise kernel that is made from a functor: the user's three, and a gradient's dy.
inline constexpr int kMostPointwiseInputs = 4;

// The loop of such a functor, which is passed as the attributes. It computes out[i] = f(in[0][i],
// in[1][i], ..) for count elements. out may be one of the inputs.
template <class T>
using PointwiseLoop = void (*)(const Attributes& functor, const T* const* in, T* out,
                               std::int64_t count) noexcept;
struct PointwiseLoops {
  PointwiseLoop<float> in_float;  // for f16 and bf16 as well
  PointwiseLoop<double> in_double;
};

namespace cpu {
// Runs the loop over inputs that broadcast to the outputs by NumPy's rules, of one floating dtype.
// out may be an input of out's own shape.
Status pointwise(const KernelContext& context, const PointwiseLoops& loops);
}  // namespace cpu

}  // namespace ebb
