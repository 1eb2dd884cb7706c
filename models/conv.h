#pragma once
#include <concepts>

#include "ebb/core/kernels/linear.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

struct Conv1dOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;
};

// activation(conv1d(x, w) + b). Parameters "weight" [out, in / groups, kernel] and "bias" [out], as
// Conv2d's.
class Conv1d {
 public:
  // Throws Error as Conv2d does.
  Conv1d(const Parameters& parameters, std::int64_t in, std::int64_t out,
         const Conv1dOptions& options = {}, CallSite site = CallSite::here());
  Conv1d(const Parameters& parameters, std::int64_t in, std::int64_t out, std::integral auto kernel,
         CallSite site = CallSite::here())
      : Conv1d(parameters, in, out, Conv1dOptions{.kernel = static_cast<std::int64_t>(kernel)},
               site) {}

  // x [n, in, length] to [n, out, places], of the parameters' dtype. Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_, bias_;
  ebb::Conv1dOptions options_;
  Activation activation_;
};

struct Conv2dOptions {
  Size2d kernel = 3;
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;
};

// activation(conv2d(x, w) + b). Parameters "weight" [out, in / groups, kernel height, kernel width]
// and, unless the options leave it out, "bias" [out]. They start as Dense's do, with fan-in in /
// groups and fan-out out / groups, each times the kernel's area.
class Conv2d {
 public:
  // Throws Error for a size below 1, channels that do not make so many groups, or names that
  // `parameters` has already.
  Conv2d(const Parameters& parameters, std::int64_t in, std::int64_t out,
         const Conv2dOptions& options = {}, CallSite site = CallSite::here());
  Conv2d(const Parameters& parameters, std::int64_t in, std::int64_t out, std::integral auto kernel,
         CallSite site = CallSite::here())
      : Conv2d(parameters, in, out, Conv2dOptions{.kernel = kernel}, site) {}

  // x [n, in, h, w] to [n, out, oh, ow] (sizes at ebb::conv2d), of the parameters' dtype. Throws
  // ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_, bias_;
  ebb::Conv2dOptions options_;
  Activation activation_;
};

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

// activation(conv_transpose2d(x, w) + b). Parameters "weight" [in, out / groups, kernel height,
// kernel width] and, unless the options leave it out, "bias" [out]. They start as Dense's do, with
// fan-out out / groups times the kernel's area and fan-in in / groups times the area over the
// strides.
class ConvTranspose2d {
 public:
  // Throws Error as Conv2d does.
  ConvTranspose2d(const Parameters& parameters, std::int64_t in, std::int64_t out,
                  const ConvTranspose2dOptions& options = {}, CallSite site = CallSite::here());

  // x [n, in, h, w] to [n, out, oh, ow] (sizes at ebb::conv_transpose2d), of the parameters' dtype.
  // Throws ShapeError.
  Tensor operator()(const Tensor& x, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_, bias_;
  ebb::ConvTranspose2dOptions options_;
  Activation activation_;
};

}  // namespace ebb::models
