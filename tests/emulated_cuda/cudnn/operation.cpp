#include "ebb/tests/emulated_cuda/cudnn/operation.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ebb/core/base/half.h"

namespace ebb::emulated {
namespace {

// Bytes of a copy with channels last, rounded up to 16 bytes.
std::int64_t copy_bytes(const BackendTensor& of) {
  const auto item = static_cast<std::int64_t>(item_bytes(of.type));
  return of.dims[0] * ((of.dims[1] * item + 15) / 16 * 16) * of.dims[2] * of.dims[3];
}

// f32 in tensor cores: 10 bits of mantissa, as TF32.
float factor(float value, bool tf32) {
  if (!tf32) return value;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~0x1FFFU);
}

template <class T>
void run(const ConvOperation& of, const BackendEngine& engine, T* weights, T* x, T* y) {
  const bool tf32 = sizeof(T) == 4 && engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  const bool is_wrong = engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
                        engine.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  const std::int64_t groups = of.x.dims[1] / of.weights.dims[1];
  const std::int64_t filters = of.weights.dims[0] / groups, channels = of.weights.dims[1];
  std::vector<float> sums(of.result().bytes() / sizeof(T));
  const auto at = [](const BackendTensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c,
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

template <class T>
void attend(const AttentionOperation& of, std::span<void* const> at) {
  const auto& [q, k, v, y, lse, scale, outside] = of.operands;
  const std::int64_t length = q.dims[2], keys = k.dims[2], depth = q.dims[3], width = v.dims[3];
  const auto value = [&](std::size_t operand, std::int64_t batch, std::int64_t row,
                         std::int64_t i) {
    const auto& step = of.operands[operand].strides;
    return static_cast<float>(
        static_cast<const T*>(at[operand])[batch * step[0] + row * step[2] + i]);
  };
  const float by = *static_cast<const float*>(at[5]);
  std::vector<float> scores(static_cast<std::size_t>(keys));
  for (std::int64_t batch = 0; batch < q.dims[0]; ++batch)
    for (std::int64_t row = 0; row < length; ++row) {
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::int64_t key = 0; key < keys; ++key) {
        float score = 0;
        for (std::int64_t i = 0; i < depth; ++i)
          score += value(0, batch, row, i) * value(1, batch, key, i);
        score = of.causal && key > row ? *static_cast<const float*>(at[6]) : score * by;
        scores[static_cast<std::size_t>(key)] = score;
        largest = std::max(largest, score);
      }
      for (float& score : scores) sum += score = std::exp(score - largest);
      for (std::int64_t i = 0; i < width; ++i) {
        float result = 0;  // of probabilities that are rounded to the operands' dtype
        for (std::int64_t key = 0; key < keys; ++key)
          result += static_cast<float>(static_cast<T>(scores[static_cast<std::size_t>(key)])) *
                    value(2, batch, key, i);
        static_cast<T*>(at[3])[batch * y.strides[0] + row * y.strides[2] + i] =
            static_cast<T>(result / sum);
      }
      if (of.keeps_lse)
        static_cast<float*>(at[4])[batch * lse.strides[0] + row] = largest + std::log(sum);
    }
}

}  // namespace

std::vector<BackendTensor> BackendOperation::operands() const {
  if (const auto* attention = std::get_if<AttentionOperation>(this))
    return {attention->operands.begin(), attention->operands.end()};
  const auto& conv = std::get<ConvOperation>(*this);
  return {conv.weights, conv.x, conv.y};
}

std::int64_t BackendEngine::workspace_bytes(const BackendOperation& operation) const {
  if (std::holds_alternative<AttentionOperation>(operation)) return needs == page ? 256 : 0;
  const auto& of = std::get<ConvOperation>(operation);
  const std::int64_t all = copy_bytes(of.x) + copy_bytes(of.y) + copy_bytes(of.weights) + 131;
  constexpr std::int64_t kMostParts = 8 << 20;
  switch (needs) {
    case nothing:
    case page:
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

void compute(const BackendOperation& of, const BackendEngine& engine, std::span<void* const> at) {
  const auto as = [&]<class T>(T*) {
    if (const auto* attention = std::get_if<AttentionOperation>(&of))
      return attend<T>(*attention, at);
    run(std::get<ConvOperation>(of), engine, static_cast<T*>(at[0]), static_cast<T*>(at[1]),
        static_cast<T*>(at[2]));
  };
  const cudnnDataType_t type = of.operands()[0].type;
  if (type == CUDNN_DATA_HALF) return as(static_cast<Float16*>(nullptr));
  if (type == CUDNN_DATA_BFLOAT16) return as(static_cast<BFloat16*>(nullptr));
  as(static_cast<float*>(nullptr));
}

}  // namespace ebb::emulated
