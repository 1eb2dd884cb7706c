#pragma once
#include <concepts>
#include <functional>

#include "ebb/core/ops/plain_number.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

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

// Random tensors, floating, drawn now, from the calling thread's generator (set_seed). Uniform in
// [low, high), bounds that are rounded to the dtype (two that it does not tell apart are an Error,
// but for low = high, which draws that number); normal, by Box and Muller (kernels/random.h);
// ones and zeros. A graph that uses the result captures it, so that it is the same in every run:
// what draws anew in each are the functions of graph/random.h and the _like forms below. Throw
// ShapeError for another dtype or an open shape, Error for parameters of no distribution.
Tensor uniform(const Shape& shape, const UniformOptions& options = {},
               CallSite site = CallSite::here());
Tensor normal(const Shape& shape, const NormalOptions& options = {},
              CallSite site = CallSite::here());
Tensor bernoulli(const Shape& shape, const BernoulliOptions& options = {},
                 CallSite site = CallSite::here());
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

// Integers in [low, high), drawn likewise, of i32, i64 or u8. Each is as likely as any other to
// within 2^-32; the same on every device. Throws ShapeError for another dtype or an open shape,
// Error for integers that the dtype does not have, none of them or more than 2^32.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options = {}, CallSite site = CallSite::here());
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return randint(low, high, shape, RandintOptions{.dtype = dtype}, site);
}

struct PermutationOptions {
  Device device = Device::cpu();
};

// The integers [0, count) in a random order, i64[count], drawn likewise: the argsort of random
// integers of 63 bits, the same on every device. Equal ones among them, which would leave two in
// their order, have a probability below count^2 / 2^64. Throws Error for other counts.
Tensor permutation(std::int64_t count, const PermutationOptions& options = {},
                   CallSite site = CallSite::here());

// The same in the shape and dtype of x, floating, whose values are not read: for a symbolic x,
// whose shape may be open, a node that draws anew in each run; for a concrete x now and on x's
// device. No gradient passes. Throw as the functions above.
Tensor uniform_like(const Operand& x, double low = 0, double high = 1);
Tensor normal_like(const Operand& x, double mean = 0, double standard_deviation = 1);
Tensor bernoulli_like(const Operand& x, double probability = 0.5);

// A class for each row of logits [.., classes], floating, drawn with the probabilities of
// softmax(logits / temperature): i64 [..], as argmax gives it. 0 is the likeliest class, without a
// draw; -infinity is never drawn; a row with NaN gives the first NaN's class. Of probabilities p,
// categorical(log(p)). Drawn as the functions above, by the largest sum of a logit and Gumbel noise
// (Gumbel, "Statistical theory of extreme values", 1954; Maddison et al., "A* sampling", NeurIPS
// 2014), in float for f16 and bf16; two tensors of the size of the logits meanwhile. Classes beyond
// 2^24 times less likely than another do not come. No gradient passes. Throws Error for a
// temperature that is negative or not finite, ShapeError as argmax.
Tensor categorical(const Operand& logits, double temperature = 1);

// In training each element becomes 0 with `probability`, else x / (1 - probability); in inference,
// and for probability 0, x itself. The mask is drawn anew in each call, or in each run of
// a graph; it is not stored, the gradient draws it again from the same draw. Throws Error for a
// probability outside [0, 1).
Tensor dropout(const Operand& x, double probability, Phase phase);

namespace detail {
// Throws Error for a probability outside [0, 1].
void require_probability(double probability, CallSite site);
// What is said where random numbers of another dtype than a floating one are asked for.
std::string makes_floating(DType dtype);
// The attributes of uniform, normal and bernoulli, whose one input is a draw i64[2]: a and b as
// RandomAttributes has them, the shape and dtype of what they make.
Attributes creation_attributes(double a, double b, const Shape& shape, DType dtype);
// Those of randint, whose one input is a draw. Throws what it throws.
Attributes randint_attributes(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
                              CallSite site);
// Those of both permutations: random integers below `end`, drawn twice by draw(end).
Tensor permutation_of(std::int64_t count, CallSite site,
                      const std::function<Tensor(std::int64_t end)>& draw);
}  // namespace detail

// Inputs: the draw, and for the _like operators the tensor whose shape and dtype they take.
extern const OpDef uniform_op, normal_op, bernoulli_op, randint_op, uniform_like_op, normal_like_op,
    bernoulli_like_op, dropout_op;
// Input: a session's random state, i64[2] {key, run count}; output: the draw i64[2] {key, counter}
// of one random node in that run (kernels/random.h).
extern const OpDef draw_op;
// Updates a session's random state: the next run is another one.
extern const OpDef next_run_op;

}  // namespace ebb
