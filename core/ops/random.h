#pragma once
#include <concepts>

#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/arguments.h"
#include "ebb/core/random/random.h"

namespace ebb {

// The purpose that a model is called for. Dropout acts in training only.
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

// Random tensors, floating, drawn now from the calling thread's generator (set_seed). A graph that
// uses one captures it, so that it is the same in every run; to draw anew in each run, use
// graph/create.h or the _like forms below. Throw ShapeError for another dtype or an open shape,
// Error for parameters of no distribution.

// Random numbers in [low, high), all equally likely. Bounds are rounded to the dtype; two that
// become equal are an Error, unless low = high was asked for, which draws that number.
Tensor uniform(const Shape& shape, const UniformOptions& options = {},
               CallSite site = CallSite::here());
// Random numbers of a normal distribution. By Box and Muller (core/kernels/random.h).
Tensor normal(const Shape& shape, const NormalOptions& options = {},
              CallSite site = CallSite::here());
// Random ones and zeros, ones with `probability`.
Tensor bernoulli(const Shape& shape, const BernoulliOptions& options = {},
                 CallSite site = CallSite::here());
// Parameters may stand for the options.
Tensor uniform(const Shape& shape, detail::PlainNumber auto low, detail::PlainNumber auto high,
               CallSite site = CallSite::here()) {
  return uniform(shape,
                 UniformOptions{.low = static_cast<double>(low), .high = static_cast<double>(high)},
                 site);
}
Tensor normal(const Shape& shape, detail::PlainNumber auto mean,
              detail::PlainNumber auto standard_deviation, CallSite site = CallSite::here()) {
  return normal(shape,
                NormalOptions{.mean = static_cast<double>(mean),
                              .standard_deviation = static_cast<double>(standard_deviation)},
                site);
}
Tensor bernoulli(const Shape& shape, detail::PlainNumber auto probability,
                 CallSite site = CallSite::here()) {
  return bernoulli(shape, BernoulliOptions{.probability = static_cast<double>(probability)}, site);
}
Tensor uniform(const Shape& shape, std::same_as<DType> auto dtype,
               CallSite site = CallSite::here()) {
  return uniform(shape, UniformOptions{.dtype = dtype}, site);
}
Tensor normal(const Shape& shape, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return normal(shape, NormalOptions{.dtype = dtype}, site);
}

struct RandintOptions {
  DType dtype = DType::i64;
  Device device = Device::cpu();
};

// Random integers in [low, high), of i32, i64 or u8. Drawn as above; each is as likely as any other
// to within 2^-32, and the same on every device. Throws ShapeError for another dtype or an open
// shape, Error for integers that the dtype does not have, an empty range, or one of more than 2^32.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options = {}, CallSite site = CallSite::here());
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return randint(low, high, shape, RandintOptions{.dtype = dtype}, site);
}

struct PermutationOptions {
  Device device = Device::cpu();
};

// The integers [0, count) in a random order, i64 [count]. Drawn as above: the argsort of random
// integers of 63 bits, the same on every device. Two equal ones among them, which would keep their
// order, have a probability below count^2 / 2^64. Throws ShapeError for a count that is negative or
// too large.
Tensor permutation(std::int64_t count, const PermutationOptions& options = {},
                   CallSite site = CallSite::here());

// Random tensors of the shape and dtype of x, floating, whose values are not read. For a symbolic
// x, whose shape may be open, they are nodes that draw anew in each run; for a concrete x they are
// drawn now, on x's device. No gradient passes. Throw as uniform, normal and bernoulli.

// uniform() in the shape and dtype of x.
Tensor uniform_like(const Operand& x, double low = 0, double high = 1);
// normal() in the shape and dtype of x.
Tensor normal_like(const Operand& x, double mean = 0, double standard_deviation = 1);
// bernoulli() in the shape and dtype of x.
Tensor bernoulli_like(const Operand& x, double probability = 0.5);

// A class for each row of logits [.., classes], drawn with the probabilities of softmax(logits /
// temperature). Floating; gives i64 [..], as argmax. A temperature of 0 takes the likeliest class,
// without a draw. A class with logit -infinity is never drawn; a row with NaN gives the class of
// its first NaN. For probabilities p, use categorical(log(p)). Drawn by the largest sum of a logit
// and Gumbel noise (Gumbel, "Statistical theory of extreme values", 1954; Maddison et al., "A*
// sampling", NeurIPS 2014), in float for f16 and bf16; takes two tensors of the size of the logits
// meanwhile. A class over 2^24 times less likely than another is never drawn. No gradient passes.
// Throws Error for a temperature that is negative or not finite, ShapeError as argmax.
Tensor categorical(const Operand& logits, double temperature = 1);

// x with each element set to 0 with `probability`, and the others divided by 1 - probability, in
// training. In inference, and for probability 0, x itself. The mask is drawn anew in each call, or
// in each run of a graph. It is not stored: the gradient draws it again from the same draw. Throws
// Error for a probability outside [0, 1).
Tensor dropout(const Operand& x, double probability, Phase phase);

namespace detail {
// The attributes of uniform, normal and bernoulli, whose only input is a draw i64[2]. a and b are
// as in RandomAttributes, shape and dtype are the output's.
Attributes creation_attributes(double a, double b, const Shape& shape, DType dtype);
// The attributes of randint, whose only input is a draw. Throws as randint.
Attributes randint_attributes(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
                              CallSite site);
}  // namespace detail

// Inputs: the draw, and for the _like functions the tensor whose shape and dtype they take.
extern const OpDef uniform_op, normal_op, bernoulli_op, randint_op, dropout_op;
// Input: a session's random state, i64[2] {key, run count}; output: the draw i64[2] {key, counter}
// of one random node in that run (kernels/random.h).
extern const OpDef draw_op;
// Advances a session's random state, so that the next run draws other numbers.
extern const OpDef next_run_op;

}  // namespace ebb
