// The operands of a convolution's passes, and cuDNN's workspace, for kernels and memory rules.
#pragma once
#include <algorithm>
#include <type_traits>

#include "ebb/allocator/profile.h"
#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/device_kernel.h"

namespace ebb::cuda {

// A transposed convolution is the input gradient of a convolution: its result is x.
enum class ConvPass { forward, input_gradient, weight_gradient };

// The operands x, weights and y of a pass, one of which is its result. Of: MemoryQuery or
// KernelContext.
template <class Of>
auto conv_operands(ConvPass pass, const Of& of) noexcept {
  using Operand = std::remove_reference_t<decltype(of.inputs[0])>;
  struct Operands {
    Operand &x, &weights, &y;
  };
  Operand &first = of.inputs[0], &second = of.inputs[1], &result = of.outputs[0];
  if (pass == ConvPass::forward) return Operands{first, second, result};
  if (pass == ConvPass::input_gradient) return Operands{result, second, first};
  return Operands{first, result, second};
}

inline const Spec& spec_of(const Spec& spec) noexcept { return spec; }
inline const Spec& spec_of(const Buffer& buffer) noexcept { return buffer.spec; }

template <class Of>
ConvLayout conv_layout(ConvPass pass, const Of& of) noexcept {
  const auto [x, weights, y] = conv_operands(pass, of);
  return {spec_of(x).shape, spec_of(weights).shape, spec_of(y).shape,
          of.template attribute<ConvAttributes>()};
}

// Whether cuDNN should compute it, if it has a plan within the workspace. No operand is empty then.
// PyTorch splits larger images, since some of cuDNN's kernels count elements in 32 bits.
inline constexpr std::int64_t kMostCudnnElements = (std::int64_t{1} << 31) - 1;
inline bool suits_cudnn(const ConvLayout& of, DType dtype,
                        const memory::Profile* profile) noexcept {
  return profile != nullptr && profile->has_cudnn && dtype != DType::f64 &&
         (dtype != DType::bf16 || profile->compute_capability >= 80) && of.is_usual() &&
         of.images > 0 && of.filters > 0 && of.channels > 0 && of.places() > 0 && of.pixels() > 0 &&
         of.images * std::max(of.groups * of.channels * of.pixels(),
                              of.groups * of.filters * of.places()) <=
             kMostCudnnElements;
}

// Bytes of workspace that cuDNN's plan may use. Tensor cores read and write channels last, rounded
// up to 16 bytes: plans for them copy x, weights and y. Some also sum in parts, most of the weight
// gradient's. Other plans need a few KiB, and are cuDNN's first choice for images of few channels.
// Learned from cuDNN 9.19 by tests/gpu_check/cudnn_workspaces.cpp, which tells how many plans fit.
inline std::size_t cudnn_limit(ConvPass pass, const ConvLayout& of, DType dtype,
                               int compute_capability, bool tf32) noexcept {
  constexpr std::size_t kLeast = 128 << 10;
  constexpr std::int64_t kFewChannels = 4;
  const bool by_channel = of.groups > 1 && of.channels == 1;
  const bool few = pass == ConvPass::forward && of.groups * of.channels <= kFewChannels;
  const bool tensor_cores = is_half(dtype) || (tf32 && compute_capability >= 80);
  if (!tensor_cores || by_channel || few) return kLeast;
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  const auto rounded = [&](std::int64_t n) { return (n * item + 15) / 16 * 16; };
  const std::size_t copies =
      static_cast<std::size_t>(of.images * (rounded(of.groups * of.channels) * of.pixels() +
                                            rounded(of.groups * of.filters) * of.places()) +
                               of.groups * of.filters * rounded(of.channels) * of.taps());
  const std::size_t parts = pass == ConvPass::weight_gradient
                                ? std::min(copies, std::size_t{8} << 20)
                                : std::min(copies / 16, std::size_t{2} << 20);
  return kLeast + copies + parts;
}

// Prepares a pass: cuDNN's first plan within query.workspace_bytes whose bits are the same every
// time, without timing; ebb's own kernel where there is none.
detail::Ref<Prepared> prepare_conv(ConvPass pass, const MemoryQuery& query);

}  // namespace ebb::cuda
