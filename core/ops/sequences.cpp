// Numbers at equal distances, and matrices by their diagonals.
#include <cmath>
#include <iomanip>
#include <sstream>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/create.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using detail::message;

std::string text(double number) {
  std::ostringstream stream;
  stream << std::setprecision(17) << number;
  return stream.str();
}

// Whether a dtype of integers has the number, and doubles count up to it (2^53).
bool has(DType dtype, double number) noexcept {
  const double least = dtype == DType::u8 ? 0 : dtype == DType::i32 ? -0x1p31 : -0x1p53;
  const double most = dtype == DType::u8 ? 255 : dtype == DType::i32 ? 0x1p31 - 1 : 0x1p53;
  return number >= least && number <= most && number == std::floor(number);
}

void infer_sequence(Inference& inference) {
  const auto& told = inference.attribute<SequenceAttributes>();
  inference.output(static_cast<DType>(told.dtype), {told.count});
}

void infer_eye(Inference& inference) {
  const auto& told = inference.attribute<EyeAttributes>();
  inference.output(static_cast<DType>(told.dtype), {told.rows, told.columns});
}

void infer_triangular(Inference& inference) {
  inference.require(inference.inputs[0].shape.rank() >= 2, "takes matrices [..., m, n]");
  detail::output_like_first(inference);
}

Tensors triangular_gradient(const GradientContext& g) {
  const auto& told = g.attribute<TriangularAttributes>();
  return {apply_one(told.upper != 0 ? triu_op : tril_op, {Operand(g.take_dy())}, told, g.site())};
}

Tensor make(const OpDef& op, const Attributes& told, const Device& device, CallSite site) {
  return std::move(apply_on(device, op, told, site)[0]);
}

}  // namespace

Tensor full(const Shape& shape, double value, const CreateOptions& options, CallSite site) {
  return Tensor::full(shape, value, options.dtype, options.device, site);
}

Tensor zeros(const Shape& shape, const CreateOptions& options, CallSite site) {
  return Tensor::zeros(shape, options.dtype, options.device, site);
}

Tensor ones(const Shape& shape, const CreateOptions& options, CallSite site) {
  const detail::CalledScope called("ones");
  return Tensor::full(shape, 1, options.dtype, options.device, site);
}

Tensor arange(double end, const ArangeOptions& options, CallSite site) {
  return arange(0, end, options, site);
}

Tensor arange(double start, double end, const ArangeOptions& options, CallSite site) {
  const double step = options.step, steps = (end - start) / step;
  const auto fail = [&](const std::string& why) { throw Error(message("arange", why, site)); };
  if (!std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step) || step == 0)
    fail("takes finite numbers and a step that is not 0, not " + text(start) + " to " + text(end) +
         " by " + text(step));
  if (options.dtype == DType::boolean) fail("makes numbers, not bool");
  if (!(steps < 0x1p53)) fail("that would be " + text(steps) + " numbers");
  SequenceAttributes told{.start = start, .step = step};
  told.count = steps > 0 ? static_cast<std::int64_t>(std::ceil(steps)) : 0;
  told.dtype = static_cast<std::int64_t>(options.dtype);
  if (!is_floating(options.dtype) && told.count > 0) {
    const double second = start + step,
                 last = std::fma(static_cast<double>(told.count - 1), step, start);
    for (const double number : {start, told.count > 1 ? second : start, last})
      if (!has(options.dtype, number))
        fail(std::string(name(options.dtype)) + " does not have the number " + text(number));
  }
  return make(arange_op, told, options.device, site);
}

Tensor linspace(double start, double end, std::int64_t count, const CreateOptions& options,
                CallSite site) {
  const auto fail = [&](const std::string& why) { throw Error(message("linspace", why, site)); };
  if (!is_floating(options.dtype))
    fail(std::string("makes f32, f64, f16 or bf16, not ") + name(options.dtype));
  if (count < 0) fail("takes no count of " + std::to_string(count));
  if (!std::isfinite(end - start))
    fail("takes finite numbers, not " + text(start) + " to " + text(end));
  SequenceAttributes told{.start = start};
  told.step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  told.last = end;
  told.has_last = count > 1;
  told.count = count;
  told.dtype = static_cast<std::int64_t>(options.dtype);
  return make(linspace_op, told, options.device, site);
}

Tensor eye(std::int64_t rows, const EyeOptions& options, CallSite site) {
  const std::int64_t columns = options.columns.value_or(rows);
  if (rows < 0 || columns < 0)
    throw ShapeError(message("eye",
                             "takes no matrix of " + std::to_string(rows) + " rows and " +
                                 std::to_string(columns) + " columns",
                             site));
  return make(
      eye_op,
      EyeAttributes{rows, columns, options.diagonal, static_cast<std::int64_t>(options.dtype)},
      options.device, site);
}

Tensor tril(const Operand& x, std::int64_t diagonal) {
  return detail::apply_to(tril_op, x, TriangularAttributes{diagonal, 0});
}
Tensor triu(const Operand& x, std::int64_t diagonal) {
  return detail::apply_to(triu_op, x, TriangularAttributes{diagonal, 1});
}

constinit const OpDef arange_op{
    .name = "arange", .infer = infer_sequence, .cpu = {cpu::sequence}, .cuda = {cuda::sequence}};
constinit const OpDef linspace_op{
    .name = "linspace", .infer = infer_sequence, .cpu = {cpu::sequence}, .cuda = {cuda::sequence}};
constinit const OpDef eye_op{
    .name = "eye", .infer = infer_eye, .cpu = {cpu::eye}, .cuda = {cuda::eye}};

constinit const OpDef tril_op{.name = "tril",
                              .infer = infer_triangular,
                              .gradient = triangular_gradient,
                              .takes_over = bit(0),
                              .selects = true,
                              .cpu = {cpu::triangular},
                              .cuda = {cuda::triangular}};
constinit const OpDef triu_op{.name = "triu",
                              .infer = infer_triangular,
                              .gradient = triangular_gradient,
                              .takes_over = bit(0),
                              .selects = true,
                              .cpu = {cpu::triangular},
                              .cuda = {cuda::triangular}};

}  // namespace ebb
