#pragma once
#include "ebb/core/op_def.h"
#include "ebb/core/operand.h"
#include "ebb/core/random.h"

namespace ebb {

// What a model is called for: dropout acts in training only.
enum class Phase : std::uint8_t { inference, training };

struct UniformOptions {
  double low = 0;
  double high = 1;
  DType dtype = DType::f32;
  Device device = Device::cpu();
};

struct NormalOptions {
  double mean = 0;
  double standard_deviation = 1;
  DType dtype = DType::f32;
  Device device = Device::cpu();
};

struct BernoulliOptions {
  double probability = 0.5;  // of a one
  DType dtype = DType::f32;
  Device device = Device::cpu();
};

// Random tensors, f32 or f64, from the calling thread's generator (set_seed). Uniform in
// [low, high); normal, by Box and Muller (kernels/random.h); ones and zeros. Throw ShapeError for
// another dtype, Error for a probability outside [0, 1].
Tensor uniform(const Shape& shape, const UniformOptions& options = {}, EBB_CALL_SITE);
Tensor normal(const Shape& shape, const NormalOptions& options = {}, EBB_CALL_SITE);
Tensor bernoulli(const Shape& shape, const BernoulliOptions& options = {}, EBB_CALL_SITE);

// In training each element becomes 0 with `probability`, else x / (1 - probability); in inference,
// and for probability 0, x itself. f32, f64. The mask is not stored: the gradient draws it again
// from the same draw. Throws Error for a probability outside [0, 1).
Tensor dropout(const Operand& x, double probability, Phase phase);

namespace detail {
// The attributes of uniform, normal and bernoulli, whose one input is a draw i64[2]: a and b as
// RandomAttributes has them, the shape and dtype of what they make.
Attributes creation_attributes(double a, double b, const Shape& shape, DType dtype);
}  // namespace detail

extern const OpDef uniform_op, normal_op, bernoulli_op, dropout_op;
// Input: a graph's run count (i64 scalar); output: the draw i64[2] {key, counter} of one random
// node in that run (kernels/random.h).
extern const OpDef draw_op;

}  // namespace ebb
