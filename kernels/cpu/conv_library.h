#pragma once
#include <cstddef>
#include <optional>

#include "ebb/core/kernels/conv.h"

namespace ebb::cpu {

enum class ConvPart { forward, input_gradient, weight_gradient };

// Convolutions by oneDNN's own kernels, which take channels side by side: operands are copied into
// workspace, weights as a whole, images some at a time. Nothing where oneDNN is not there, or is
// not known to be faster. The workspace grows with the number of images up to a bound, and with the
// weights.

// Throws std::bad_alloc.
std::optional<std::size_t> library_conv_workspace(ConvPart part, const ConvLayout& of, DType dtype);
// forward: x, weights to y; input_gradient: dy, weights to dx; weight_gradient: x, dy to dw.
std::optional<Status> library_conv(ConvPart part, const ConvLayout& of, const Buffer& a,
                                   const Buffer& b, const Buffer& out, void* workspace) noexcept;

}  // namespace ebb::cpu
