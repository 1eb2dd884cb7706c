// Creation of tensors: filled, from the host, from another device, numbers at equal distances, and
// matrices by their diagonals.
#include "ebb/core/ops/create.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"
#include "ebb/core/kernels/create.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::refuse;

namespace {

using FullAttributes = detail::MakingAttributes<FillAttributes>;

std::string text(double number) { return detail::formatted("%.17g", number); }

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

Tensor make(const OpDef& op, const Attributes& told, const Device& device, CallSite site) {
  return std::move(apply_on(device, op, told, site)[0]);
}

Tensor fill(const char* function, const Operand& x, double value) {
  const detail::CalledScope called(function);
  return detail::apply_to(fill_like_op, x, FillAttributes{value});
}

template <const OpDef& op>
constexpr OpDef triangular(const char* name) {
  return {.name = name,
          .infer = infer_triangular,
          .gradient = detail::gradient_by<op>,
          .takes_over = bit(0),
          .cpu = {cpu::triangular},
          .cuda = {cuda::triangular}};
}

}  // namespace

Tensor Tensor::full(Shape shape, double value, DType dtype, const Device& device, CallSite site) {
  if (shape.is_open())
    refuse<ShapeError>("full", "the shape " + shape.to_string() + " is open", site);
  return make(full_op, FullAttributes({value}, shape, dtype), device, site);
}

Tensor Tensor::zeros(Shape shape, DType dtype, const Device& device, CallSite site) {
  const detail::CalledScope called("zeros");
  return full(shape, 0, dtype, device, site);
}

Tensor Tensor::clone(CallSite site) const {
  if (!defined()) refuse("clone", "takes a tensor, not " + to_string(), site);
  const detail::CalledScope called("clone");
  return copy({*this, site});
}

// A temporary that is there already stays the only handle, so that updates of a copy are noticed.
Tensor Tensor::to(const Device& device, CallSite site) && {
  if (defined() && impl_->storage && this->device() == device) return std::move(*this);
  return std::as_const(*this).to(device, site);
}

Tensor Tensor::to(const Device& device, CallSite site) const& {
  detail::Trace* const trace = detail::tape_mode().trace;
  if (!defined() || (!impl_->storage && !trace))
    refuse("to", "takes a concrete tensor, not " + to_string(), site);
  const Device here = this->device();
  if (here == device) return *this;
  if (trace)
    refuse("to",
           "would move a tensor from " + here.name() + " to " + device.name() +
               " within a compiled step, which runs on one device",
           site);
  if (here.is_simulated() && !device.is_simulated()) {  // values that a prediction gives, if any
    detail::require_readable(*impl_, "to", site);
    Tensor given = detail::allocate(impl_->spec, device, detail::tape_mode().category,
                                    detail::tag("to", site));
    given.impl()->storage->write(0, bytes(), [&](void* values) {
      detail::copy_elements(*impl_, 0, static_cast<std::size_t>(impl_->spec.shape.elements()),
                            values, "to", site);
    });
    return given;
  }
  const Input input(*this);
  return std::move(detail::run_now(to_op, {&input, 1}, {}, site, {}, &device)[0]);
}

constinit const OpDef full_op{
    .name = "full",
    .infer = [](Inference& inference) { inference.attribute<FullAttributes>().output(inference); },
    .pointwise = true,
    .cpu = {cpu::fill},
    .cuda = {cuda::fill}};

constinit const OpDef to_op{.name = "to",
                            .infer = detail::output_like_first,
                            .gradient = [](const GradientContext& g) -> Tensors {
                              return {g.dy().to(*g.node().extra->device)};
                            },
                            .moves = true};

Tensor full_like(const Operand& x, double value) { return fill("full_like", x, value); }
Tensor fill_like(const Operand& x, double value) { return fill("fill_like", x, value); }
Tensor zeros_like(const Operand& x) { return fill("zeros_like", x, 0); }
Tensor ones_like(const Operand& x) { return fill("ones_like", x, 1); }

constinit const OpDef fill_like_op{.name = "fill_like",
                                   .infer = detail::output_like_first,
                                   .gradient = detail::no_gradient,
                                   .shape_only = bit(0),
                                   .pointwise = true,
                                   .cpu = {cpu::fill},
                                   .cuda = {cuda::fill}};

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
  const auto fail = [&](const std::string& why) { refuse("arange", why, site); };
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
  const auto fail = [&](const std::string& why) { refuse("linspace", why, site); };
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
    refuse<ShapeError>("eye",
                       "takes no matrix of " + std::to_string(rows) + " rows and " +
                           std::to_string(columns) + " columns",
                       site);
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

constinit const OpDef tril_op = triangular<tril_op>("tril");
constinit const OpDef triu_op = triangular<triu_op>("triu");

}  // namespace ebb
