#pragma once
#include <concepts>

#include "ebb/core/kernels/linear.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

// The layer of the options below: activation(convolution(x, w) + b). Parameters "weight" and,
// unless the options leave it out, "bias" [out]. They start as Dense's do, with fan-in in / groups
// and fan-out out / groups, each times the kernel's area.
template <class Options>
class ConvLayer {
 public:
  // Throws Error for a size below 1, channels that do not make so many groups, or names that
  // `parameters` has already.
  ConvLayer(const Parameters& parameters, std::int64_t in, std::int64_t out,
            const Options& options = {}, CallSite site = CallSite::here());
  ConvLayer(const Parameters& parameters, std::int64_t in, std::int64_t out,
            std::integral auto kernel, CallSite site = CallSite::here())
      : ConvLayer(parameters, in, out, Options{.kernel = static_cast<std::int64_t>(kernel)}, site) {
  }

  // x [n, in, sizes] to [n, out, sizes] (at ebb::conv2d and its kin), of the parameters' dtype.
  // Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_, bias_;
  Options options_;
};

struct Conv1dOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;
};

// conv1d, with "weight" [out, in / groups, kernel].
using Conv1d = ConvLayer<Conv1dOptions>;

struct Conv2dOptions {
  Size2d kernel = 3;
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;
};

// conv2d, with "weight" [out, in / groups, kernel height, kernel width].
using Conv2d = ConvLayer<Conv2dOptions>;

struct ConvTranspose2dOptions {
  Size2d kernel = 3;
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d output_padding = 0;
  Size2d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;
};

// conv_transpose2d, with "weight" [in, out / groups, kernel height, kernel width]. Its fan-in is
// over the strides: each output element gets contributions from only 1 / stride of the taps.
using ConvTranspose2d = ConvLayer<ConvTranspose2dOptions>;

}  // namespace ebb::models
