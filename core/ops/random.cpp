#include "ebb/core/ops/random.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

using detail::refuse;

namespace {

using CreationAttributes = detail::MakingAttributes<RandomAttributes>;
using IntegerAttributes = detail::MakingAttributes<RandintAttributes>;

// The error message for random numbers of a dtype that is not floating.
std::string makes_floating(DType dtype) {
  return std::string("makes f32, f64, f16 or bf16, not ") + name(dtype);
}

// The shape and dtype are those of input 1, or without it the attributes'.
template <class Making>
void infer_creation(Inference& inference) {
  inference.require(detail::is_draw(inference.inputs[0]), "the draw must be i64[2]");
  if (inference.inputs.size() == 1) return inference.attribute<Making>().output(inference);
  const Spec& like = inference.inputs[1];
  if (!is_floating(like.dtype)) inference.fail(makes_floating(like.dtype));
  inference.output(like.dtype, like.shape);
}

Tensor create(const OpDef& op, double a, double b, const Shape& shape, DType dtype,
              const Device& device, CallSite site) {
  const detail::CalledScope called(op.name);
  if (shape.is_open())
    refuse<ShapeError>(
        op.name,
        "takes no open shape " + shape.to_string() +
            (detail::tape_mode().tracing ? std::string("; ") + op.name + "_like does" : ""),
        site);
  if (!is_floating(dtype)) refuse<ShapeError>(op.name, makes_floating(dtype), site);
  const detail::GeneratorTrial trial;
  const Tensor draw = detail::next_draw(device, site);
  return apply_one(op, {draw}, detail::creation_attributes(a, b, shape, dtype), site);
}

Tensor create_like(const char* function, const OpDef& op, const Operand& x, double a, double b) {
  const detail::CalledScope called(function);
  const detail::HeldOperand held(x);
  const Tensor& like = detail::tensor_of(op, *held);
  const detail::GeneratorTrial trial;
  const Tensor draw = detail::next_draw(like, x.site());
  return apply_one(op, {draw, like}, RandomAttributes{a, b}, x.site());
}

void infer_dropout(Inference& inference) {
  detail::same_shape(inference);
  inference.require(detail::is_draw(inference.inputs[1]), "the draw must be i64[2]");
}

// None of these is stateful: the randomness is in the draw, an input.
constexpr OpDef creation(const char* name, Kernel cpu, Kernel cuda) {
  return {.name = name,
          .infer = infer_creation<CreationAttributes>,
          .gradient = detail::no_gradient,
          .shape_only = bit(1),
          .cpu = {cpu},
          .cuda = {cuda}};
}

void infer_draw(Inference& inference) {
  inference.require(detail::is_draw(inference.inputs[0]), "the random state must be i64[2]");
  inference.output(DType::i64, {2});
}

// Throws Error for a probability outside [0, 1].
void require_probability(double probability, CallSite site) {
  if (!(probability >= 0 && probability <= 1))
    refuse("bernoulli", "takes a probability in [0, 1]", site);
}

double rounded(double x, DType dtype) {
  return with_type_of(dtype, [&](auto type) -> double {
    if constexpr (std::is_integral_v<decltype(type)>)
      return x;
    else
      return convert<double>(convert<decltype(type)>(x));
  });
}

// The bounds of a uniform draw of this dtype, rounded to it, in the name of `what`. Throws Error
// for bounds that are not finite or in the wrong order, and for two that are rounded to one number.
RandomAttributes uniform_bounds(const char* what, double low, double high, DType dtype,
                                CallSite site) {
  const RandomAttributes bounds{rounded(low, dtype), rounded(high, dtype)};
  const auto given = [&] { return std::to_string(low) + " and " + std::to_string(high); };
  // The kernels of f32 and of 16 bits hold the width as a float.
  const double width =
      dtype == DType::f64 ? bounds.b - bounds.a : rounded(bounds.b - bounds.a, DType::f32);
  if (!(std::isfinite(bounds.a) && std::isfinite(bounds.b) && std::isfinite(width) && low <= high))
    refuse(what,
           "takes finite bounds, the lower one first, not " + given() +
               (std::isfinite(high - low) && low <= high
                    ? std::string(", which are too far apart for ") + name(dtype)
                    : ""),
           site);
  if (low < high && !(bounds.a < bounds.b))
    refuse(what,
           "takes bounds that differ in " + std::string(name(dtype)) + ", where " + given() +
               " both are " + std::to_string(bounds.a) + "; draw in f32 and cast() the result",
           site);
  return bounds;
}

// Throws Error for a mean or deviation that is not finite or a deviation below 0.
void require_normal(const char* what, double mean, double standard_deviation, CallSite site) {
  if (!(std::isfinite(mean) && std::isfinite(standard_deviation) && standard_deviation >= 0))
    refuse(what,
           "takes a finite mean and a finite standard deviation of 0 or more, not " +
               std::to_string(mean) + " and " + std::to_string(standard_deviation),
           site);
}

}  // namespace

Attributes detail::creation_attributes(double a, double b, const Shape& shape, DType dtype) {
  return CreationAttributes({a, b}, shape, dtype);
}

Attributes detail::randint_attributes(std::int64_t low, std::int64_t high, const Shape& shape,
                                      DType dtype, CallSite site) {
  const bool is_byte = dtype == DType::u8, is_int = dtype == DType::i32;
  if (!is_byte && !is_int && dtype != DType::i64)
    refuse<ShapeError>("randint", std::string("makes i32, i64 or u8, not ") + name(dtype), site);
  if (shape.is_open())
    refuse<ShapeError>("randint", "takes no open shape " + shape.to_string(), site);
  constexpr std::int64_t kInts = std::int64_t{1} << 31;
  const std::int64_t least = is_byte ? 0 : is_int ? -kInts : low;
  const std::int64_t end = is_byte ? 256 : is_int ? kInts : high;
  const auto count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (low >= high || low < least || high > end || count > std::uint64_t{1} << 32)
    refuse("randint",
           "takes up to 2^32 integers of " + std::string(name(dtype)) + ", not [" +
               std::to_string(low) + ", " + std::to_string(high) + ")",
           site);
  return IntegerAttributes({.low = low, .count = count}, shape, dtype);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options, CallSite site) {
  const detail::CalledScope called("randint");
  const Attributes told = detail::randint_attributes(low, high, shape, options.dtype, site);
  const detail::GeneratorTrial trial;
  const Tensor draw = detail::next_draw(options.device, site);
  return apply_one(randint_op, {draw}, told, site);
}

Tensor permutation(std::int64_t count, const PermutationOptions& options, CallSite site) {
  if (count < 0)
    refuse<ShapeError>("permutation", "takes a count from 0 on, not " + std::to_string(count),
                       site);
  if (count > kMaxElements)
    refuse<ShapeError>("permutation", detail::too_large(Shape{count}), site);
  constexpr std::int64_t kLower = std::int64_t{1} << 32;
  const detail::CallScope scope(site);
  const detail::CalledScope called("permutation");
  const auto draw = [&](std::int64_t end) {
    return randint(0, end, {count}, {.device = options.device});
  };
  Tensor upper = draw(kLower / 2) * static_cast<double>(kLower);  // drawn first
  return argsort(std::move(upper) + draw(kLower));
}

Tensor uniform(const Shape& shape, const UniformOptions& options, CallSite site) {
  const RandomAttributes bounds =
      uniform_bounds("uniform", options.low, options.high, options.dtype, site);
  return create(uniform_op, bounds.a, bounds.b, shape, options.dtype, options.device, site);
}

Tensor normal(const Shape& shape, const NormalOptions& options, CallSite site) {
  require_normal("normal", options.mean, options.standard_deviation, site);
  return create(normal_op, options.mean, options.standard_deviation, shape, options.dtype,
                options.device, site);
}

Tensor bernoulli(const Shape& shape, const BernoulliOptions& options, CallSite site) {
  require_probability(options.probability, site);
  return create(bernoulli_op, options.probability, 1, shape, options.dtype, options.device, site);
}

Tensor uniform_like(const Operand& x, double low, double high) {
  const detail::CalledScope called("uniform_like");
  const DType dtype = detail::tensor_of(uniform_op, x).dtype();
  const RandomAttributes bounds = uniform_bounds("uniform_like", low, high, dtype, x.site());
  return create_like("uniform_like", uniform_op, x, bounds.a, bounds.b);
}

Tensor normal_like(const Operand& x, double mean, double standard_deviation) {
  require_normal("normal_like", mean, standard_deviation, x.site());
  return create_like("normal_like", normal_op, x, mean, standard_deviation);
}

Tensor bernoulli_like(const Operand& x, double probability) {
  const detail::CalledScope called("bernoulli_like");
  require_probability(probability, x.site());
  return create_like("bernoulli_like", bernoulli_op, x, probability, 1);
}

Tensor categorical(const Operand& logits, double temperature) {
  const detail::CalledScope called("categorical");
  const CallSite site = logits.site();
  if (!(temperature >= 0 && std::isfinite(temperature)))
    refuse("categorical", "takes a temperature of 0 or more, not " + std::to_string(temperature),
           site);
  const Tensor& given = detail::tensor_of(argmax_op, logits);
  if (!is_floating(given.dtype()))
    refuse<ShapeError>("categorical",
                       std::string(detail::kTakesFloating) + ", not " + given.to_string(), site);
  const detail::CallScope scope(site);
  // No gradient passes, so nothing is kept for one.
  const detail::TapeModeScope mode(detail::without_history());
  Tensor scores = given;
  if (temperature > 0) {
    if (is_half(scores.dtype())) scores = cast({std::move(scores), site}, DType::f32);
    // The uniform numbers start above 0, by too little to change others: a 0 could leave a row with
    // no class, since its noise is infinite.
    Tensor noise = log({uniform_like({scores, site}, 1e-30), site});
    noise = log({negate({std::move(noise), site}), site});
    if (temperature != 1) scores = divide({std::move(scores), site}, temperature);
    scores = subtract({std::move(scores), site}, {std::move(noise), site});
  }
  return argmax({std::move(scores), site}, ArgOptions{.axis = -1});
}

Tensor dropout(const Operand& x, double probability, Phase phase) {
  const detail::CalledScope called(dropout_op.name);
  const Tensor& tensor = detail::tensor_of(dropout_op, x);
  if (!(probability >= 0 && probability < 1))
    refuse("dropout", "takes a probability in [0, 1)", x.site());
  if (phase == Phase::inference || probability == 0) return x.take();
  const detail::GeneratorTrial trial;
  const detail::HeldOperand held(x);
  const Tensor draw = detail::next_draw(tensor, x.site());
  return apply_one(dropout_op, {*held, draw}, RandomAttributes{.a = probability}, x.site());
}

constinit const OpDef uniform_op = creation("uniform", cpu::uniform, cuda::uniform);
constinit const OpDef normal_op = creation("normal", cpu::normal, cuda::normal);
constinit const OpDef bernoulli_op = creation("bernoulli", cpu::bernoulli, cuda::bernoulli);

constinit const OpDef randint_op{.name = "randint",
                                 .infer = infer_creation<IntegerAttributes>,
                                 .cpu = {cpu::randint},
                                 .cuda = {cuda::randint}};

constinit const OpDef dropout_op{.name = "dropout",
                                 .infer = infer_dropout,
                                 .gradient = detail::gradient_by<dropout_op, 1>,
                                 .keeps = input(1),
                                 .takes_over = bit(0),
                                 .cpu = {cpu::dropout},
                                 .cuda = {cuda::dropout}};

constinit const OpDef draw_op{
    .name = "draw", .infer = infer_draw, .cpu = {cpu::draw}, .cuda = {cuda::draw}};

constinit const OpDef next_run_op{.name = "next_run",
                                  .infer = infer_draw,
                                  .updates = bit(0),
                                  .stateful = true,
                                  .cpu = {cpu::next_run},
                                  .cuda = {cuda::next_run}};

}  // namespace ebb
