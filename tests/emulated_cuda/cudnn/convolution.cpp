#include "ebb/tests/emulated_cuda/cudnn/convolution.h"

#include <bit>
#include <limits>

#include "ebb/core/base/half.h"

namespace ebb::emulated {
namespace {

// Bytes of a copy with channels last, rounded up to 16 bytes.
std::int64_t copy_bytes(const ConvTensor& of) {
  const auto item = static_cast<std::int64_t>(item_bytes(of.type));
  return of.dims[0] * ((of.dims[1] * item + 15) / 16 * 16) * of.dims[2] * of.dims[3];
}

// f32 in tensor cores: 10 bits of mantissa, as TF32.
float factor(float value, bool tf32) {
  if (!tf32) return value;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~0x1FFFU);
}

template <class T>
void run(const ConvOperation& of, const ConvEngine& engine, T* weights, T* x, T* y) {
  const bool tf32 = sizeof(T) == 4 && engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  const bool is_wrong = engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
                        engine.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  const std::int64_t groups = of.x.dims[1] / of.weights.dims[1];
  const std::int64_t filters = of.weights.dims[0] / groups, channels = of.weights.dims[1];
  std::vector<float> sums(of.result().bytes() / sizeof(T));
  const auto at = [](const ConvTensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c,
                     std::int64_t d) {
    const auto& step = tensor.strides;
    return static_cast<std::size_t>(a * step[0] + b * step[1] + c * step[2] + d * step[3]);
  };
  const auto value = [&](T of_factor) { return factor(static_cast<float>(of_factor), tf32); };
  for (std::int64_t image = 0; image < of.x.dims[0]; ++image)
    for (std::int64_t filter = 0; filter < of.weights.dims[0]; ++filter)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t a = 0; a < of.weights.dims[2]; ++a)
          for (std::int64_t b = 0; b < of.weights.dims[3]; ++b)
            for (std::int64_t i = 0; i < of.y.dims[2]; ++i) {
              const std::int64_t row = i * of.stride[0] - of.before[0] + a * of.dilation[0];
              if (row < 0 || row >= of.x.dims[2]) continue;
              for (std::int64_t j = 0; j < of.y.dims[3]; ++j) {
                const std::int64_t column = j * of.stride[1] - of.before[1] + b * of.dilation[1];
                if (column < 0 || column >= of.x.dims[3]) continue;
                const std::size_t in = at(of.x, image, filter / filters * channels + channel, row,
                                          column),
                                  tap = at(of.weights, filter, channel, a, b),
                                  out = at(of.y, image, filter, i, j);
                if (of.pass == ConvOperation::forward)
                  sums[out] += value(x[in]) * value(weights[tap]);
                else if (of.pass == ConvOperation::input_gradient)
                  sums[in] += value(y[out]) * value(weights[tap]);
                else
                  sums[tap] += value(x[in]) * value(y[out]);
              }
            }
  T* const result = of.pass == ConvOperation::forward          ? y
                    : of.pass == ConvOperation::input_gradient ? x
                                                               : weights;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float sum = static_cast<float>(of.alpha) * sums[i];
    if (of.beta != 0) sum += static_cast<float>(of.beta) * static_cast<float>(result[i]);
    result[i] = static_cast<T>(is_wrong ? std::numeric_limits<float>::quiet_NaN() : sum);
  }
}

}  // namespace

std::int64_t ConvEngine::workspace_bytes(const ConvOperation& of) const {
  const std::int64_t all = copy_bytes(of.x) + copy_bytes(of.y) + copy_bytes(of.weights) + 131;
  constexpr std::int64_t kMostParts = 8 << 20;
  switch (needs) {
    case nothing:
      return 0;
    case little:
      return 2304;
    case copies:
      return all;
    case copies_and_parts:
      return of.pass == ConvOperation::weight_gradient ? all + std::min(all, kMostParts) : all;
    case four_copies:
      break;
  }
  return 4 * all + (1 << 20);
}

void convolve(const ConvOperation& of, const ConvEngine& engine, void* weights, void* x, void* y) {
  const auto as = [&]<class T>(T*) {
    run(of, engine, static_cast<T*>(weights), static_cast<T*>(x), static_cast<T*>(y));
  };
  if (of.x.type == CUDNN_DATA_HALF) return as(static_cast<Float16*>(nullptr));
  if (of.x.type == CUDNN_DATA_BFLOAT16) return as(static_cast<BFloat16*>(nullptr));
  as(static_cast<float*>(nullptr));
}

}  // namespace ebb::emulated
